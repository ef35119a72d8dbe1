"""`marlab draw` of a sweep: its tables, figure, results and verdict again, from the runs of its trials."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run
from tests.lab.sweep.cases import RATES, table, tiny_sweep


@pytest.fixture
def copy(whole: Run, tmp_path: Path) -> Path:
    shutil.copytree(whole.path, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_sweep_is_drawn_again_as_it_was(whole: Run, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = {name: (copy / name).read_text() for name in ("comparison.json", "comparison.md")}
    for name in (*made, "figures/comparison.png", "figures/comparison.svg"):
        (copy / name).unlink()
    before = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps({**before, "results": {}, "verdict": []}))
    assert main(["draw", str(copy)]) == 0
    assert {name: (copy / name).read_text() for name in made} == made
    assert (copy / "figures/comparison.png").stat().st_size > 5000 and (copy / "figures/comparison.svg").exists()
    assert json.loads((copy / "run.json").read_text()) == before
    said = capsys.readouterr().out
    assert whole.verdict[0] in said and "Drawn: " in said


def test_rungs_are_decided_again_from_the_metrics(tmp_path: Path) -> None:
    run = tiny_sweep(tmp_path / "halved", RATES, rungs=(2, 4), keep=0.4)
    found, page = table(run), (run.path / "comparison.md").read_text()
    (run.path / "comparison.json").unlink()
    again = draw(read_run(run.path))
    assert table(again) == found and len(found["rungs"]) == 1 and len(found["rows"]) == 2
    assert (run.path / "comparison.md").read_text() == page


def test_what_is_finished_is_drawn_and_what_failed_is_told(copy: Path) -> None:
    shutil.rmtree(copy / "trials/02-1e-2-s1")
    assert [row["name"] for row in table(draw(read_run(copy)))["rows"]] == [
        "learning_rate=0.0001", "learning_rate=0.003",
    ]  # fmt: skip
    record = copy / "trials/01-3e-3-s0/run.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "status": "failed", "reason": "no more disk"}))
    assert table(draw(read_run(copy)))["failed"] == {"01-3e-3-s0": "no more disk"}
    assert "no more disk" in (copy / "comparison.md").read_text()
    shutil.rmtree(copy / "trials/00-1e-4-s1")
    with pytest.raises(UserError, match="fewer than two are finished"):
        draw(read_run(copy))


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (None, "has nothing to draw yet"),
        ([1], "not a table"),
        ({"settings": 3, "default": None}, "is damaged or of another version"),
        ({"settings": [{"setting": "a", "values": {}, "trials": ["../../x"]}], "default": None}, "outside the sweep"),
        ({"settings": [{"setting": "a", "values": {}, "trials": [".."]}], "default": None}, "outside the sweep"),
        ({"settings": [{"setting": "a", "values": {}, "trials": [7]}], "default": None}, "outside the sweep"),
    ],
)
def test_a_damaged_plan_is_a_sentence(copy: Path, plan: Any, told: str) -> None:
    (copy / "plan.json").unlink() if plan is None else (copy / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(UserError, match=told):
        draw(read_run(copy))
