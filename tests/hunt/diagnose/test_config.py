"""The settings of a diagnosis."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.hunt.diagnose.config import DiagnoseConfig
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.errors import UserError


def test_runs_are_named_once_and_in_order() -> None:
    assert DiagnoseConfig("a", ("b", "a", "c")).all_runs == ("a", "b", "c")
    with pytest.raises(UserError, match="Say which run"):
        _ = DiagnoseConfig().all_runs


def test_gates_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "gates.toml").write_text("top1 = 0.5\n")
    assert DiagnoseConfig("run", gates=tmp_path / "gates.toml").read_gates() == Gates(top1=0.5)
    (tmp_path / "gates.toml").write_text("best = 0.5\n")
    with pytest.raises(UserError, match="best"):
        DiagnoseConfig("run", gates=tmp_path / "gates.toml").read_gates()
    with pytest.raises(UserError, match="cannot be read"):
        DiagnoseConfig("run", gates=tmp_path / "missing.toml").read_gates()


@pytest.mark.parametrize(("name", "value"), [("episodes", 1), ("belief_games", -1)])
def test_wrong_settings_are_refused(name: str, value: int) -> None:
    with pytest.raises(UserError, match=f"{name} is {value}"):
        DiagnoseConfig("run", **{name: value})  # type: ignore[arg-type]
