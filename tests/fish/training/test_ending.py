"""The end of a training: what a stopped one still leaves, what is kept back for it, and the verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marlab.fish.training.train import train
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from tests.fish.cases import SMALL

pytestmark = pytest.mark.long  # whole trainings with their figures and evaluations
MEASURE = replace(SMALL.measure, video_num_fish=0, tail_replay_count=0)


def test_a_stopped_training_has_figures_tables_results_and_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(SMALL, measure=MEASURE)
    stops = iter([False, True] + [False] * 100)
    with monkeypatch.context() as stopping:
        stopping.setattr(Run, "should_stop", lambda run: next(stops))
        run = train(config, RunOptions(output_dir=tmp_path / "a", time_limit=60), quiet=True)
    assert run.status == "interrupted" and run.budget.expected("evaluation") == 0.0  # it was used
    for name in ("stats.parquet", "step_one_stage_summary.json", "figures/a_survival.png", "figures/a_first_death.png"):
        assert (run.path / name).stat().st_size > 0, name
    assert "final model: survival" in run.results and len(run.verdict) == 3
    assert run.verdict[0].startswith("The model of iteration 2 ") and "--resume" in run.verdict[-1]
    again = train(config, RunOptions(output_dir=tmp_path / "a", resume=True), quiet=True)
    assert again.status == "finished" and "--resume" not in again.verdict[-1]
    info = read_run(run.path)
    assert info.verdict[0]["numbers"]["iteration"] in (4, 8)
    key = str(info.judged.key(info.results))  # of the model that the verdict is about
    assert info.results[key]["value"] == info.verdict[0]["numbers"]["survival"]


def test_a_signal_leaves_the_evaluation_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(SMALL, measure=replace(MEASURE, multi_eval_interval=1))
    monkeypatch.setattr(Run, "signalled", property(lambda run: True))
    run = train(config, RunOptions(output_dir=tmp_path / "a"), quiet=True)
    assert run.status == "interrupted" and (run.path / "figures" / "a_survival.png").exists()
    assert "final model: survival" not in run.results and not (run.path / "eval").exists()
    assert run.verdict[0].startswith("In the last probe (iteration 1) ")


def test_time_for_the_end_is_measured_and_kept_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, float] = {}

    def look(run: Run) -> bool:
        kept.update({part: run.budget.expected(part) for part in ("figures", "evaluation") if part not in kept})
        return True

    monkeypatch.setattr(Run, "should_stop", look)
    train(replace(SMALL, measure=MEASURE), RunOptions(output_dir=tmp_path / "a", time_limit=60), quiet=True)
    assert 0.1 < kept["figures"] < 300 and 0.01 < kept["evaluation"] < 300
