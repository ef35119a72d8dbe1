"""How a pretraining of models of others ends: finished, stopped, and stopped while it judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.hunt.pretraining.ending import best_epoch, final_verdict
from marlab.hunt.pretraining.run import pretrain_goals
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import texts
from tests.hunt.others_cases import tiny


def test_a_stopped_one_has_figures_results_and_a_verdict_and_goes_on(tmp_path: Path) -> None:
    config, asked = tiny(goal_source="type", belief_games=0), iter([False] * 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: next(asked, True))
        run = pretrain_goals(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert run.status == "interrupted" and list(run.checkpoints.glob("epoch_*_halfway.pt"))
    first, second = run.verdict
    assert first.startswith("After 1 of 2 epochs the models predict") and "--resume" in second
    assert 0 < read_run(run.path).results["validation_top1"] < 1
    assert (run.path / "figures" / "losses.png").exists() and (run.path / "figures" / "epochs.png").exists()
    run = pretrain_goals(config, RunOptions(output_dir=tmp_path / "run", resume=True), quiet=True)
    assert run.status == "finished" and "the most that anybody could" in run.verdict[0]


def test_one_that_is_stopped_while_it_judges_judges_again(tmp_path: Path) -> None:
    config = tiny(goal_source="none", belief_games=0, epochs=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "must_stop", lambda self: True)
        run = pretrain_goals(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert run.status == "interrupted" and run.verdict[0].startswith("After 1 of 1 epochs")
    run = pretrain_goals(config, RunOptions(output_dir=tmp_path / "run", resume=True), quiet=True)
    assert run.status == "finished" and run.verdict[0].startswith("Whether goals help is within noise")


def test_the_best_epoch_is_the_one_that_predicts_best() -> None:
    rows = [{"step": 1}, {"step": 2, "moa/validation/ce": 0.9}, {"step": 3, "moa/validation/ce": 0.7}]
    found = best_epoch(rows)
    assert found is not None and found["step"] == 3 and best_epoch(rows[:1]) is None


@pytest.mark.parametrize(("gain", "words"), [(0.1, "Knowing goals helps"), (-0.1, "Knowing goals harms")])
def test_verdicts(gain: float, words: str) -> None:
    scores = {
        "moa": {"top1": 0.6, "rows": 100}, "gain": {"value": gain, "low": gain - 0.02, "high": gain + 0.02},
        "ceilings": {"known": {"top1": 0.7}},
    }  # fmt: skip
    first, _ = texts(final_verdict({"splits": {"validation": scores}}), "run")
    assert first.startswith(words) and "60.0 % [50.2 %, 69.1 %]" in first and "70.0 % is the most" in first
