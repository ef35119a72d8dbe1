"""`marlab fish suite`: a run with a table of cells, figures and a verdict; code that computes it is digested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.fish.measure import suite as cells_module
from marlab.fish.measure.config import SuiteConfig
from marlab.fish.training.suite import suite, summary
from marlab.lab.errors import UserError
from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions


def test_a_suite_is_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "FISH", (4,))
    monkeypatch.setattr(cells_module, "SPEEDS", (2.0,))
    monkeypatch.setattr(cells_module, "VISIONS", (0.5,))
    monkeypatch.setattr(cells_module, "DELAYS", (1,))
    monkeypatch.setattr(cells_module, "EPISODE", 20)
    run = suite(SuiteConfig("best", "pursuit", arenas=2, device="cpu"), RunOptions(output_dir=tmp_path), quiet=True)
    told = json.loads((run.path / "suite.json").read_text())
    assert set(told["survival"]) == {"the sea itself 0", "fish 4", "predator speed 2", "vision 0.5", "delay 1"}
    assert told["best_escape_angle_deg"] == pytest.approx(33.56, abs=0.01)
    assert {p.name for p in (run.path / "figures").iterdir()} >= {"generalisation.png", "escape_angles.png"}
    assert run.verdict and run.results["survival"]["low"] <= run.results["survival"]["value"]
    (run.path / "suite.json").unlink()
    for name in ("plot_carries", "plot_escape_angles", "plot_field"):  # drawn once is enough
        monkeypatch.setattr(f"marlab.fish.training.suite.{name}", lambda *_: None)
    assert draw(read_run(run.path)).verdict == run.verdict
    assert json.loads((run.path / "suite.json").read_text()) == told
    with pytest.raises(UserError, match="Name a checkpoint"):
        SuiteConfig()


def test_the_difference_is_to_the_best_script_of_the_cell() -> None:
    row = {
        name: {"survival": values} for name, values in (("policy", [0.5, 0.7]), ("a", [0.1, 0.2]), ("b", [0.4, 0.4]))
    }
    told = summary({"x 1": row})["x 1"]
    assert told["policy minus best script"]["value"] == pytest.approx(0.2)
    assert told["policy"]["value"] == pytest.approx(0.6)
