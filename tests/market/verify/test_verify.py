"""The whole check on fresh worlds of the simulator, and what it prints when something differs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.market.verify.compare import Agreement
from marlab.market.verify.settings import VerifyConfig
from marlab.market.verify.verify import report, verify


def test_a_difference_is_reported_and_fails() -> None:
    good = Agreement(worlds=1, days=5, equal=1, contracts=10, same_contracts=10, negotiations=20, same_ends=20)
    lines, right = report(["a", "b"], [True, False], [good, good], [good, good])
    assert right and "no differences" in lines
    for joint in (True, False):
        bad = replace(good, same_contracts=9)
        lines, right = report(["a"], [joint], [good], [bad])
        assert not right
    nearly = replace(good, contracts=1000, same_contracts=995)
    assert report(["a"], [False], [good], [nearly])[1] and not report(["a"], [True], [good], [nearly])[1]
    assert not report(["a"], [True], [replace(good, equal=0)], [good])[1]


@pytest.mark.long
def test_fresh_worlds_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scml")
    config = VerifyConfig(worlds=7, days=(5, 6), seed=11, policy_worlds=2, keep=tmp_path, workers=2)
    assert verify(config) == 0
    said = capsys.readouterr().out
    assert (
        "7 of 7 worlds equal" in said and "GreedyStdAgent beside SyncRandomStdAgent:" in said and "DIFFERS" not in said
    )
    assert said.strip().endswith("the vector market agrees with the simulator")
    assert len(list(tmp_path.glob("*.npz"))) == 7
    assert verify(VerifyConfig(recorded=tmp_path, policy_worlds=0)) == 0  # what was kept can be looked at again
    again = capsys.readouterr().out
    assert "7 of 7 worlds equal" in again and "level 4, rule W" in again


def test_a_folder_without_worlds_is_refused_and_so_is_a_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no recorded world"):
        verify(VerifyConfig(recorded=tmp_path, policy_worlds=0))
    (tmp_path / "a.npz").write_bytes(b"nothing")
    with pytest.raises(UserError, match="damaged"):
        verify(VerifyConfig(recorded=tmp_path, policy_worlds=0))
