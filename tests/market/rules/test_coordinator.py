"""The heuristic L4."""

import numpy as np
import pytest

from marlab.market.rules.coordinator import HeuristicL4Coordinator

DAYS, PRIORITIES = np.array([0.0, 0, 1, 5, 10]), np.array([2.5, 2.0, 2.0, 1.5, 1.2])


def test_the_worked_vector_of_the_teacher() -> None:
    alpha = HeuristicL4Coordinator().weights(DAYS, PRIORITIES)
    np.testing.assert_allclose(alpha, [0.4021, 0.3217, 0.1722, 0.0646, 0.0394], atol=5e-5)


@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_weights_share_one_and_follow_permutations(count: int) -> None:
    rng = np.random.default_rng(count)
    days, priorities = rng.integers(0, 41, count).astype(float), rng.uniform(0.1, 3, count)
    alpha = HeuristicL4Coordinator().weights(days, priorities)
    assert (alpha >= 0).all() and alpha.sum() == pytest.approx(1)
    order = rng.permutation(count)
    np.testing.assert_allclose(HeuristicL4Coordinator().weights(days[order], priorities[order]), alpha[order])


def test_padding_changes_nothing_and_gets_nothing() -> None:
    active = np.array([[True] * 5 + [False] * 3, [False] * 8])
    days, priorities = np.full((2, 8), 3.0), np.full((2, 8), 2.0)
    days[0, :5], priorities[0, :5] = DAYS, PRIORITIES
    alpha = HeuristicL4Coordinator().weights(days, priorities, active)
    np.testing.assert_allclose(alpha[0, :5], HeuristicL4Coordinator().weights(DAYS, PRIORITIES))
    assert (alpha[~active] == 0).all()
    assert HeuristicL4Coordinator().weights(np.zeros(0), np.zeros(0)).shape == (0,)
