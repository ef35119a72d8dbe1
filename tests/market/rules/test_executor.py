"""The rules of L3 (acceptance, the heuristic executor) and the heuristic L4."""

import numpy as np
import pytest

from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.rules import l1
from marlab.market.rules.executor import Decision, HeuristicL3Executor, HeuristicL4Coordinator, corrected, rule_accepts
from marlab.market.rules.l1 import Action, L1Options
from tests.market.days import a_day, random_days

NEGOTIATED = L1Options()
DAYS, PRIORITIES = np.array([0.0, 0, 1, 5, 10]), np.array([2.5, 2.0, 2.0, 1.5, 1.2])


def test_no_residual_is_the_clipped_baseline_whatever_the_weight() -> None:
    states = random_days(1000, seed=1)
    rng = np.random.default_rng(2)
    for options in (NEGOTIATED, L1Options(rules="economic")):
        for selling in (np.zeros(1000, bool), np.ones(1000, bool)):
            caps = l1.caps(states, options)
            base = l1.baseline(states, caps, selling, options)
            cap, issue = caps.of(selling), l1.issue_of(states, selling)
            nothing = Decision(np.full(1000, REJECT), np.zeros(1000), np.zeros(1000), base.day)
            action = corrected(base, nothing, rng.random(1000))
            for emitted, plain in zip(
                l1.clip_action(action, cap, caps.budget, selling, issue),
                l1.clip_action(base, cap, caps.budget, selling, issue),
            ):
                np.testing.assert_array_equal(emitted, plain)


def test_concessions_grow_with_the_history_and_stop_at_a_tenth() -> None:
    base = Action(np.full(3, 20.0), np.full(3, 10.0), np.full(3, 2.0))
    mask = np.where(np.isin(np.arange(41), [1, 4, 6]), 0.0, -np.inf)
    length = np.array([0.0, 2, 30])
    buying = HeuristicL3Executor().decide(base, mask, np.zeros(3, bool), length)
    np.testing.assert_allclose(buying.price, [0, 0.4, 1])
    np.testing.assert_allclose(buying.quantity, [-2, -1.92, -1.8])
    assert buying.day.tolist() == [6, 6, 6] and buying.op.tolist() == [REJECT] * 3
    selling = HeuristicL3Executor().decide(base, mask, np.ones(3, bool), length, np.array([True, False, True]))
    np.testing.assert_allclose(selling.price, [0, -0.4, -1])
    np.testing.assert_allclose(selling.quantity, [0, 0.08, 0.2])
    assert selling.day.tolist() == [1, 1, 1] and selling.op.tolist() == [ACCEPT, REJECT, ACCEPT]
    closed = HeuristicL3Executor().decide(base, np.full(41, -np.inf), np.zeros(3, bool), length)
    assert closed.day.tolist() == [2, 2, 2]
    np.testing.assert_allclose(corrected(base, buying, np.array([0.0, 0.5, 1])).price, [10, 10.6, 12])


def test_the_rule_accepts_what_fits_at_a_price_near_the_goal() -> None:
    state = a_day()
    caps = l1.caps(state, NEGOTIATED)
    goal = np.tile([5.0, 10.0, 5.0, 20.0], 4)

    def accepts(selling: bool, quantity: float, price: float, day: float) -> bool:
        offer = Action(*(np.array(v) for v in (quantity, price, day)))
        issue = l1.issue_of(state, selling)
        return bool(rule_accepts(offer, goal, caps.of(selling), caps.budget, selling, issue))

    assert accepts(False, 10, 11, 3) and not accepts(False, 10, 11.1, 3)
    assert accepts(True, 10, 18, 3) and not accepts(True, 10, 17.9, 3)
    assert not accepts(False, 10, 10, 11)  # beyond the issue
    assert not accepts(False, 801, 10, 3)  # not affordable
    assert accepts(True, 40, 20, 3) and not accepts(True, 41, 20, 3)
    assert not accepts(True, np.nan, np.nan, np.nan)


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
    assert HeuristicL4Coordinator().weights(np.zeros(0), np.zeros(0)).shape == (0,)
