"""Reports of all layers, beside predictors that learnt nothing, and `marlab market eval-l2`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from marlab.market.learn.command import EvalL2Config, MarketTrainConfig
from marlab.market.learn.command import eval_l2_main as main
from marlab.market.learn.evaluate import (
    eval_l2,
    evaluate_actions,
    evaluate_goals,
    evaluate_weights,
    goal_errors,
    trivial_actions,
    trivial_goals,
)
from marlab.market.learn.phases import train
from marlab.market.learn.trainers import (
    new_coordinator,
    new_executor,
    new_manager,
)
from marlab.market.logs.worldfile import read_world
from marlab.market.rules.goals import GAP, SPREAD
from marlab.market.samples.dataset import Samples
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from tests.market.learn_cases import CPU, SMALL, labelled_samples
from tests.market.sample_tools import TINY, write_dataset


@pytest.fixture(scope="module")
def samples() -> Samples:
    return labelled_samples()


def test_trivial_predictors(samples: Samples) -> None:
    goals = trivial_goals(samples)
    day = int(np.flatnonzero(samples.macro["needs"][:, 0] > 0)[0])
    assert goals["gap only"][day, 0] == pytest.approx(GAP * SPREAD[0] * samples.macro["needs"][day, 0], rel=1e-5)
    assert (goals["zero and spot"][:, ::2] == 0).all()
    guesses = trivial_actions(samples, majority_op=2)
    assert (guesses["majority"]["op"] == 2).all() and (guesses["baseline"]["residual"] == 0).all()
    # "copy" against a plain walk through the histories
    found, there = samples.histories(np.arange(samples.rows("micro")))
    for i in range(0, samples.rows("micro"), 7):
        own = [row for row, present in zip(found[i], there[i]) if present and row[3] > 0]
        offer = guesses["copy"]["residual"][i] + samples.micro["baseline"][i, :2]
        expected = own[-1][:2] if own else samples.micro["baseline"][i, :2]
        np.testing.assert_allclose(offer, expected, atol=1e-4)


def test_reports_of_all_layers_are_complete(samples: Samples) -> None:
    goals = evaluate_goals(new_manager(SMALL, samples.sizes), samples, CPU)
    assert goals["gap only"]["Q"]["rmse"] < goals["zero and spot"]["Q"]["rmse"] and len(goals["per_bucket"]) == 4
    untrained = new_executor(SMALL, 40)
    found = evaluate_actions(untrained, samples, CPU, majority_op=1)
    assert found["L3"]["confusion"] == found["baseline"]["confusion"]  # without learning it is the baseline
    assert found["L3"]["mae_q"] == pytest.approx(found["baseline"]["mae_q"])
    assert found["L3"]["day_acc"] == found["baseline"]["day_acc"]
    assert found["copy"]["mae_q_interval"] == [None, None]  # one world tells no spread
    two = [log._replace(world=f"w{i % 2}") for i, log in enumerate(samples.logs)]
    low, high = evaluate_actions(untrained, replace(samples, logs=two), CPU, majority_op=1)["copy"]["mae_q_interval"]
    assert low < found["copy"]["mae_q"] < high
    weights = evaluate_weights(new_coordinator(SMALL, 40), samples, CPU)
    assert weights["kl"] > 0 and weights["rounds"] > 0


def test_perfect_goals_have_no_error_and_an_offset_shows_as_itself() -> None:
    rng = np.random.default_rng(0)
    target = rng.uniform(0, 5, (50, 16))
    roles = np.tile([1.0, 0.0], (50, 1))
    perfect = goal_errors(target, target, roles)
    assert all(perfect[part][key] == 0 for part in "QP" for key in ("mae", "rmse", "mean_rel_err"))
    shifted = target.copy()
    shifted[:, ::2] += 1
    found = goal_errors(shifted, target, roles)
    buying = target[:, [0, 4, 8, 12]]
    assert found["Q"]["mae"] == pytest.approx(1) and found["P"]["mae"] == 0
    assert found["Q"]["mean_rel_err"] == pytest.approx((1 / np.maximum(buying, 1)).mean())
    assert found["Q"]["mean_target"] == pytest.approx(buying.mean())
    far = target.copy()
    far[:, [2, 3, 6, 7, 10, 11, 14, 15]] += 100  # a side that is not traded on
    assert goal_errors(far, target, roles)["Q"]["mae"] == 0


def test_the_command_judges_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = [extract(log, SampleOptions()) for log in read_world(TINY).tracked()]
    write_dataset(tmp_path / "data", {"train": logs[0], "val": logs[-1]}, to_dict(SampleOptions()))
    config = MarketTrainConfig(data=tmp_path / "data", phases="l2", l2_epochs=2, device="cpu")
    run = train(config, RunOptions(output_dir=tmp_path / "run"), quiet=True).path
    assert main([str(run), "--split", "val", "--output-dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "gap only" in said and "one world" in said and (tmp_path / "eval_l2_val.json").exists()
    old = ["--output-dir", str(run), "--agent-name", "Pe", "--num-workers", "32", "--batch-size", "1024"]
    assert main([*old, "--device", "auto"]) == 0 and (run / "eval_l2_val.json").exists()
    assert "--num-workers has no effect" in capsys.readouterr().out
    assert eval_l2(EvalL2Config(run / "checkpoints" / "l2_bc.pt", "val", tmp_path / "data"))["days"] > 0
    with pytest.raises(UserError, match="no split 'test'"):
        eval_l2(EvalL2Config(run, "test"))
    with pytest.raises(UserError, match="--data"):
        eval_l2(EvalL2Config(run / "checkpoints" / "l2_bc.pt"))
    with pytest.raises(UserError, match="no L2 model"):
        eval_l2(EvalL2Config(tmp_path / "data"))
