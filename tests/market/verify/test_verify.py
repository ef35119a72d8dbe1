"""The whole check on fresh worlds of the simulator, and what it prints when something differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from marlab.lab.engine.tasks import EngineConfig, Task
from marlab.lab.errors import UserError
from marlab.market.simulator import worlds
from marlab.market.vector.replay import replay_contracts, replay_moves
from marlab.market.verify.compare import Agreement, compare
from marlab.market.verify.plan import planned
from marlab.market.verify.settings import VerifyConfig
from marlab.market.verify.verify import by_shape, recorded, report, verify
from tests.market.vector_worlds import GOLDEN, recorded_worlds


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
    assert len(list(tmp_path.glob("*.parquet"))) == 7
    assert verify(VerifyConfig(recorded=tmp_path, policy_worlds=0)) == 0  # what was kept can be looked at again
    again = capsys.readouterr().out
    assert "7 of 7 worlds equal" in again and "level 4, rule W" in again


def test_a_folder_without_worlds_is_refused_and_so_is_a_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no recorded world"):
        verify(VerifyConfig(recorded=tmp_path, policy_worlds=0))
    (tmp_path / "a.parquet").write_bytes(b"nothing")
    with pytest.raises(UserError, match="not a log of a market world"):
        verify(VerifyConfig(recorded=tmp_path, policy_worlds=0))


def test_worlds_that_were_kept_are_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [spec for _, spec in planned(2, (5, 5), 0, ["SyncRandom"])]
    golden = [path.read_bytes() for path in sorted(GOLDEN.glob("*.parquet"))[:2]]
    first, second = recorded_worlds()[:2]
    asked: list[str] = []

    def played(function: Any, tasks: list[Task], engine: EngineConfig, stop: Any) -> Iterator[Any]:
        asked.extend(task.key for task in tasks)
        yield from (SimpleNamespace(ok=True, key=task.key, value=(golden[0], 1.0)) for task in tasks)

    monkeypatch.setattr(worlds, "run_tasks", played)
    (tmp_path / f"{specs[1].world_id}.parquet").write_bytes(golden[1])
    found = recorded(specs, EngineConfig(), True, tmp_path)
    assert [world.world_id for world in found] == [first.world_id, second.world_id]  # in the order that was asked for
    assert asked == [specs[0].world_id] and len(list(tmp_path.iterdir())) == 2
    assert len(recorded(specs, EngineConfig(), True, tmp_path)) == 2
    assert len(asked) == 1


def test_agreement_is_told_by_length_and_shape() -> None:
    some = recorded_worlds()[:2]
    settled, moved = (
        [compare(*pair) for pair in zip(some, replay(some))] for replay in (replay_contracts, replay_moves)
    )
    lines = by_shape(some, settled, moved)
    assert lines[0].split(" worlds")[0].split() == ["1", "to", "50", "days", "2", "of", "2"]
    counted = sum(int(line.split(" of ")[0].split()[-1]) for line in lines if "levels" in line)
    assert counted == 2 and all("0 too many" in line for line in lines)
    worse = by_shape(some, [replace(settled[0], equal=0), settled[1]], moved)
    assert "1 of 2 worlds equal" in worse[0]


def test_worlds_that_are_all_named_differently_share_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("marlab.market.verify.verify.MOST_POPULATIONS", 0)
    assert verify(VerifyConfig(recorded=GOLDEN, policy_worlds=0)) == 0
    said = capsys.readouterr().out
    assert "    recorded               7 of 7 worlds equal" in said and "verify-1" not in said
