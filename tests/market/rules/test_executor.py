"""The rules of L3 (acceptance, the heuristic executor) and the heuristic L4."""

import math

import numpy as np
import pytest
import torch

from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.rules import executor, l1
from marlab.market.rules.executor import Decision, HeuristicL3Executor, HeuristicL4Coordinator, corrected, rule_accepts
from marlab.market.rules.l1 import Action, L1Options
from marlab.market.rules.plan import AS_TOLD
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


BASE = Action(np.array([[4.0, 5, 6]]), np.array([[20.0, 21, 22]]), np.array([[0.0, 1, 2]]))
DECIDED = Decision(
    np.array([[REJECT, REJECT, ACCEPT]]), np.array([[1.0, 0, -2]]), np.array([[0.5, 0, 0]]), np.array([[1.0, 1, 0]])
)
ALPHA = np.array([[0.2, 0.5, 0.3]])


def test_acceptances_come_first_then_weights_and_residuals_are_added() -> None:
    made = executor.wishes_of(BASE, DECIDED, ALPHA, 4)
    assert made.order.tolist() == [[2, 1, 0]]
    assert made.quantity.tolist() == [[5, 5, 4]] and made.price.tolist() == [[20.5, 21, 22]]
    assert made.day.tolist() == [[1, 1, 0]] and (made.choice == AS_TOLD).all() and not made.rule.any()
    assert made.held.shape == (1, 4) and not made.held.any() and made.score is None
    strong = executor.wishes_of(BASE, DECIDED, ALPHA, 4, strength=ALPHA)
    np.testing.assert_allclose(strong.quantity, [[4 + 1.2, 5, 6 - 2 * 1.3]])


def test_tensors_give_the_same() -> None:
    def tensors(values: tuple[np.ndarray, ...]) -> list[torch.Tensor]:
        return [torch.as_tensor(value) for value in values]

    base, decided = Action(*tensors(BASE)), Decision(*tensors(DECIDED))  # type: ignore[arg-type]
    made = executor.wishes_of(base, decided, torch.as_tensor(ALPHA), 4, 0.5)  # type: ignore[arg-type]
    for mine, theirs in zip(made, executor.wishes_of(BASE, DECIDED, ALPHA, 4, 0.5)):
        if theirs is not None:
            np.testing.assert_array_equal(mine, theirs)


def test_l1_alone_offers_its_baseline_on_the_first_open_day() -> None:
    mask = np.array([[[0, 0, 0.0], [-math.inf, -math.inf, 0], [-math.inf, 0, -math.inf]]])
    made = executor.plain_decision(BASE, mask, np.array([[True, False, False]]))
    assert made.op.tolist() == [[ACCEPT, REJECT, REJECT]] and made.day.tolist() == [[0, 2, 1]]
    assert not made.quantity.any() and not made.price.any()


def test_parts_of_two_deciders() -> None:
    one = executor.wishes_of(BASE, DECIDED, ALPHA, 3, days=np.zeros((1, 3, 3)))
    other = executor.wishes_of(
        BASE, executor.plain_decision(BASE, np.zeros((1, 3, 3)), np.zeros((1, 3), bool)), ALPHA[:, ::-1], 3
    )
    both = executor.divided(one, other, np.array([[False, False, True]]))
    assert both.op.tolist() == [[REJECT, REJECT, ACCEPT]] and both.quantity.tolist() == [[4, 5, 4]]
    assert both.order is other.order and both.score is one.score
    no_ops, no_offers = executor.ablated(one, other, False, True), executor.ablated(one, other, True, False)
    assert no_ops.op is other.op and no_ops.quantity is one.quantity
    assert no_offers.op is one.op and no_offers.price is other.price and no_offers.score is None
