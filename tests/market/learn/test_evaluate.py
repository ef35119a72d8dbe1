"""Reports of all layers, beside predictors that learnt nothing."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market.learn.evaluate import (
    evaluate_actions,
    evaluate_goals,
    evaluate_weights,
    trivial_actions,
    trivial_goals,
)
from marlab.market.learn.trainers import (
    new_coordinator,
    new_executor,
    new_manager,
)
from marlab.market.rules.goals import GAP, SPREAD
from marlab.market.samples.dataset import Samples
from tests.market.learn_cases import CPU, SMALL, labelled_samples


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
    low, high = found["copy"]["mae_q_interval"]
    assert low <= found["copy"]["mae_q"] <= high
    weights = evaluate_weights(new_coordinator(SMALL, 40), samples, CPU)
    assert weights["kl"] > 0 and weights["rounds"] > 0
