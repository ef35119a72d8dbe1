"""Panels of fish runs hold what is in the run's folder."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from marlab.fish.measure import pages
from marlab.fish.measure.config import PROBES
from marlab.fish.measure.pathfile import FILE
from marlab.lab.errors import UserError
from marlab.lab.runs.records import RunInfo
from tests.fish.cases import some_paths


def run_at(folder: Path) -> RunInfo:
    return cast(RunInfo, SimpleNamespace(path=folder))


def a_probe(iteration: int, stage: int = 0, changed: bool = False) -> dict[str, Any]:
    gate = {
        "iteration": iteration, "event": "advance" if changed else "hold",
        "reason": "" if changed else "p10: 3 against 4",
        "stage": stage, "limit_phase": stage + 1, "success_streak": 1, "failure_streak": 0, "changed": changed,
    }  # fmt: skip
    return {
        "step": iteration, "time": 0.0, "iteration": iteration, "saved_share": 0.9, "step_one_death_count": 2,
        "doomed_count": 1, "summary": {"avg_final_survival_rate": 0.8, "min_final_survival_rate": 0.5},
        "step_one_deaths": [{"predator_velocity": [0.0, 1.5]}, {"predator_velocity": [2.1, 0.1]}], "penalty_gate": gate,
    }  # fmt: skip


def test_an_evaluation_shows_its_tank_deaths_and_field(tmp_path: Path) -> None:
    assert pages.evaluation(run_at(tmp_path)).panels == []
    paths = some_paths()
    paths.write(tmp_path / FILE)
    tank, deaths, field = pages.evaluation(run_at(tmp_path)).panels
    assert (tank.kind, deaths.kind, field.kind) == ("fish.tank", "fish.deaths", "fish.field")
    assert tank.data["fish"] == 5 and tank.data["steps"] == 30 and list(tank.parts) == [
        "arena-0-0", "arena-0-1", "arena-1-0", "arena-1-1",
    ]  # fmt: skip
    part = tank.parts["arena-1-0"]()
    raw = np.frombuffer(base64.b64decode(part["position"]), "<i2").reshape(31, 5, 2)
    assert np.abs(raw / 1000 - paths.position[0, 1].astype(float)).max() < 0.00051
    assert part["death"] == [-1, 7, -1, -1, -1]
    assert [len(policy["deaths"]) for policy in deaths.data["policies"]] == [2, 0]
    json.dumps([tank.data, deaths.data, field.data, part], allow_nan=False)


def test_a_training_shows_the_tank_of_its_best_model_and_its_probes(tmp_path: Path) -> None:
    for name in ("final_iter_9", "best_iter_4"):
        (tmp_path / "eval" / name).mkdir(parents=True)
        some_paths(fish=3 if name.startswith("best") else 5).write(tmp_path / "eval" / name / FILE)
    lines = [json.dumps(a_probe(i, stage=i // 2, changed=i == 2)) for i in range(4)]
    (tmp_path / PROBES).write_text("\n".join(lines) + "\n")
    panels = {panel.title: panel for panel in pages.training(run_at(tmp_path)).panels}
    assert panels["fish.tank.title"].data["fish"] == 3
    timeline = panels["fish.probes.title"].data
    assert [line["y"] for line in timeline["lines"]] == [[0.8] * 4, [0.5] * 4, [0.9] * 4]
    assert timeline["marks"] == [{"x": 2, "name": "→ 1"}]
    rows = panels["fish.gate.title"].data["rows"]
    assert rows[0][:3] == [0, "hold", "p10: 3 against 4"] and rows[2][2] == "fish.gate.all_met"
    assert panels["fish.probes.first"].data["lines"][1]["y"] == [1] * 4


def test_headings_are_counted_by_direction_and_speed() -> None:
    told = pages.polar([[0.0, 1.5], [2.1, 0.1], [2.1, 0.2], [-1.0, -0.01]])
    assert told["bins"][3] == [0, 1, 0] and told["bins"][0] == [0, 0, 2] and told["bins"][6] == [1, 0, 0]
    assert sum(map(sum, told["bins"])) == 4


def test_damaged_paths_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("nothing")
    with pytest.raises(UserError, match="paths of an evaluation"):
        pages.evaluation(run_at(tmp_path))
