"""Whole sweeps of the tiny world: tables, rungs, resumption, failures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from marlab.lab.compare.command import CompareConfig, compare
from marlab.lab.errors import UserError
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run
from tests.lab.sweep.cases import RATES, table, tiny_sweep


def test_every_trial_is_an_ordinary_run_and_the_sweep_is_one(whole: Run) -> None:
    trials = sorted((whole.path / "trials").iterdir())
    assert len(trials) == 6 and all(read_run(path).status == "finished" for path in trials)
    assert all(len(read_run(path).attempts) == 1 for path in trials)
    info = read_run(whole.path)
    assert (info.status, info.kind, info.results["trainings"], info.results["settings"]) == (
        "finished", "lab/sweep", 6, 3,
    )  # fmt: skip
    best = info.results["best setting"]
    assert info.judged.key(info.results) == "steps too many" and best in table(whole)["best"]
    assert len(whole.verdict) in (2, 3) and "steps too many" in whole.verdict[0]
    plan = json.loads((whole.path / "plan.json").read_text())
    assert plan["default"] == "ppo.learning_rate=3e-3" and len(plan["settings"]) == 3


def test_the_table_is_that_of_compare(whole: Run) -> None:
    rows = table(whole)["rows"]
    assert [row["name"] for row in rows] == [f"learning_rate={rate}" for rate in ("0.0001", "0.003", "0.01")]
    assert table(whole)["against"] == "learning_rate=0.003"  # the default
    again = compare(CompareConfig((str(whole.path),), against="learning_rate=0.003"))
    assert json.loads(json.dumps(again.as_json()["rows"])) == rows
    page = (whole.path / "comparison.md").read_text()
    assert "figures/comparison.png" in page and (whole.path / "figures/comparison.png").exists()


def test_cut_off_and_resumed_it_is_the_same_and_nothing_is_trained_twice(whole: Run, tmp_path: Path) -> None:
    shutil.copytree(whole.path, tmp_path / "cut")
    shutil.rmtree(tmp_path / "cut/trials/02-1e-2-s1")  # was never begun
    (tmp_path / "cut/comparison.json").unlink()
    kept = (tmp_path / "cut/trials/00-1e-4-s0/run.json").read_text()
    run = tiny_sweep(tmp_path / "cut", RATES, seeds="0,1", resume=True)
    assert table(run) == table(whole)
    assert (tmp_path / "cut/trials/00-1e-4-s0/run.json").read_text() == kept
    with pytest.raises(UserError, match="was started with another config"):
        tiny_sweep(tmp_path / "cut", RATES, seeds="0..2", resume=True)


def test_rungs_drop_settings_and_finalists_end_as_without_rungs(whole: Run, tmp_path: Path) -> None:
    run = tiny_sweep(tmp_path / "halved", RATES, seeds="0,1", rungs=(2, 4), keep=0.4)
    found = table(run)
    assert [rung["step"] for rung in found["rungs"]] == [2]  # two are left after the first: they go on to the end
    kept = found["rungs"][0]["kept"]
    assert len(kept) == 2 and found["rungs"][0]["metric"] == "episode/length"
    unhalved = {row["name"]: row for row in table(whole)["rows"]}
    assert all(row["by_training"] == unhalved[row["name"]]["by_training"] for row in found["rows"])
    states = {path.name: read_run(path).status for path in (run.path / "trials").iterdir()}
    assert sorted(states.values()) == ["finished"] * 4 + ["interrupted"] * 2
    assert "## Rung 2" in (run.path / "comparison.md").read_text()
    again = tiny_sweep(tmp_path / "halved", RATES, seeds="0,1", rungs=(2, 4), keep=0.4, resume=True)
    assert table(again) == found


def test_what_nobody_says_is_asked_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Is a higher or a lower value_loss better"):
        tiny_sweep(tmp_path / "a", RATES, rungs=(2,), halving="value_loss")
    with pytest.raises(UserError, match="unknown key 'ringz'"):
        tiny_sweep(tmp_path / "a", "ringz=1")
    assert not (tmp_path / "a").exists()


def test_a_training_that_fails_costs_its_setting(whole: Run, tmp_path: Path) -> None:
    shutil.copytree(whole.path, tmp_path / "s")
    broken = tmp_path / "s/trials/02-1e-2-s1"
    shutil.rmtree(broken)
    broken.mkdir()
    (broken / "stray.txt").write_text("not a run")
    run = tiny_sweep(tmp_path / "s", RATES, seeds="0,1", resume=True)
    assert table(run)["failed"].keys() == {"02-1e-2-s1"}
    assert [row["name"] for row in table(run)["rows"]] == ["learning_rate=0.0001", "learning_rate=0.003"]
    assert read_run(run.path).results["trainings failed"] == 1
    assert "exists and is not a run directory" in (run.path / "comparison.md").read_text()
    shutil.rmtree(broken)  # mended: what failed is trained, nothing else
    assert table(tiny_sweep(tmp_path / "s", RATES, seeds="0,1", resume=True)) == table(whole)


def test_without_a_default_the_best_is_what_others_are_measured_by(tmp_path: Path) -> None:
    run = tiny_sweep(tmp_path / "a", "time_limit_steps=10,20", seeds="0,1")
    found = table(run)
    assert found["against"] == found["best"] and found["best_minus_runner_up"]["how"] == "seeds"


def test_a_sweep_that_ran_out_of_time_compares_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = tmp_path / "a" / "trials" / "01-3e-3-s1" / "run.json"
    monkeypatch.setattr(Run, "must_stop", lambda run: finished.exists())
    run = tiny_sweep(tmp_path / "a", RATES, seeds="0,1")
    assert run.status == "interrupted" and len(table(run)["rows"]) == 2
    monkeypatch.undo()
    again = tiny_sweep(tmp_path / "a", RATES, seeds="0,1", resume=True)
    assert again.status == "finished" and len(table(again)["rows"]) == 3


def test_one_training_has_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has nothing to compare"):
        tiny_sweep(tmp_path / "a")
