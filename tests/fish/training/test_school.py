"""`marlab fish school`: a run with a table of two seas, and differences on the same arenas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.fish.measure import suite as cells_module
from marlab.fish.measure.config import SchoolConfig
from marlab.fish.training.school import OFF, ON, school, summary
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions


def test_a_school_is_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "EPISODE", 20)
    config = SchoolConfig("best", against="best", sea="shoal", arenas=2, device="cpu")
    run = school(config, RunOptions(output_dir=tmp_path), quiet=True)
    told = json.loads((run.path / "school.json").read_text())
    assert set(told) == {"policy", "against", "swerve", "evade"}
    assert {"value", "low", "high", "polarisation", "milling", "nearest"} == set(told["policy"][ON])
    assert told["against"][f"policy minus it, {ON}"]["value"] == 0.0
    assert run.verdict and run.results["minus the other, confused"]["value"] == 0.0


def test_differences_are_paired() -> None:
    def swam(*survival: float) -> dict[str, object]:
        return {"survival": survival, "schooling": {"nearest": [1.0, 2.0]}}

    told = summary(
        {"policy": {ON: swam(0.5, 0.9), OFF: swam(0.4, 0.8)}, "swerve": {ON: swam(0.3, 0.7), OFF: swam(1, 1)}}
    )
    assert told["policy"]["worth of confusion"]["value"] == pytest.approx(0.1)
    gain = told["swerve"][f"policy minus it, {ON}"]
    assert gain["value"] == pytest.approx(0.2) and gain["high"] - gain["low"] == pytest.approx(0.0, abs=1e-6)
    assert told["policy"][ON]["nearest"] == 1.5


def test_a_sea_in_which_nothing_hunts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Nothing hunts in this sea"):
        school(SchoolConfig("best", arenas=2, device="cpu"), RunOptions(output_dir=tmp_path), quiet=True)
    assert not any(tmp_path.iterdir())
