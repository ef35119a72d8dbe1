"""The same rules for torch and numpy: batches of tensors give what numpy gives for one day at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from marlab.market.logs.daystate import DayState
from marlab.market.rules import features, goals, l1, offers, records, rule_w
from marlab.market.rules.arrays import NUMPY, namespace
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.executor import HeuristicL3Executor, HeuristicL4Coordinator, rule_accepts
from marlab.market.rules.features import FeatureOptions, Negotiations
from marlab.market.rules.l1 import Action, L1Options
from marlab.market.rules.offers import Offers
from marlab.market.rules.partners import extra_features
from marlab.market.rules.plan import Threads, plan
from tests.market.days import random_days

DAYS, K, T = 120, 5, 6
OPTIONS = [
    L1Options(),
    L1Options(rules="economic", short_reserve=True),
]


def tensors(value: Any) -> Any:
    """A structure of arrays as one of tensors."""
    if isinstance(value, tuple):
        parts = [tensors(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return torch.from_numpy(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value


def take(value: Any, row: int) -> Any:
    """One row of a structure of arrays, as a batch of one."""
    if isinstance(value, tuple):
        parts = [take(part, row) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value[row : row + 1] if isinstance(value, np.ndarray) else value


def compare(found: Any, expected: Any, what: str) -> None:
    if isinstance(expected, tuple):
        for name, one, other in zip(getattr(expected, "_fields", range(99)), found, expected):
            compare(one, other, f"{what}.{name}")
    elif expected is not None:
        assert isinstance(found, torch.Tensor), what
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9, err_msg=what)


class Case(NamedTuple):
    """Random days with threads on both sides."""

    state: DayState
    buying: Threads
    selling: Threads
    alpha: np.ndarray[Any, Any]  # [N, K] for either side
    goal: np.ndarray[Any, Any]
    rounds: np.ndarray[Any, Any]
    sides: np.ndarray[Any, Any]  # [N, K] a mix of both sides
    table: Action  # offers for that mix
    relative_time: np.ndarray[Any, Any]


def threads_of(state: DayState, selling: bool, rng: np.random.Generator) -> Threads:
    issue = l1.issue_of(state, selling)
    low = [issue.quantity_min, issue.price_min, issue.first]
    high = [issue.quantity_max, issue.price_max, np.minimum(issue.last, 6)]

    def some(share: float, *shape: int) -> Action:
        there = rng.random((len(state), *shape)) < share
        columns = []
        for lowest, highest in zip(low, high):
            lowest, highest = (v.reshape(-1, *(1,) * len(shape)) for v in (lowest, highest))
            value = lowest + np.floor(rng.random(there.shape) ** 2 * (highest - lowest + 1))
            columns.append(np.where(there, np.minimum(value, highest), np.nan))
        return Action(*columns)

    shape = (len(state), K)
    known = records.empty(shape)
    for day in range(4):
        yes, left = rng.random(shape) < 0.8, rng.random(shape) < 0.3
        rounds, units = rng.integers(0, 20, shape) * 1.0, rng.integers(0, 4, shape) * 3.0
        price = 9.0 + rng.integers(0, 3, shape)
        known = records.after_negotiations(known, yes, day, rounds, units, price, 0 * price + 9, 0 * price + 11)
        heard = some(0.7, K, T)
        heard = heard._replace(price=np.where(np.isnan(heard.price), np.nan, rng.random((*shape, T))))
        known = records.after_talks(known, yes, heard, rounds + 1, units, left)
        known = records.after_reports(known, yes, rng.normal(1000, 300, shape))
    rounds = rng.integers(0, 20, shape) * 1.0
    received, proposed = some(0.6, K), some(0.3, K)
    return Threads(rng.random(shape) < 0.9, rounds, received, proposed, some(0.5, K, T), rounds // 2, known)


@pytest.fixture(scope="module")
def case() -> Case:
    rng = np.random.default_rng(11)
    state = random_days(DAYS, 12)
    shape = (DAYS, K)
    buying, selling = (threads_of(state, side, rng) for side in (False, True))
    sides = rng.random(shape) < 0.5
    table = Action(*(np.where(sides, s, b) for s, b in zip(selling.received, buying.received)))
    goal = goals.mask_goal(rng.uniform(0, 30, (DAYS, 16)), goals.roles(state))
    return Case(
        state, buying, selling, rng.dirichlet(np.ones(K), DAYS), goal, selling.round, sides, table, rng.random(shape)
    )


def test_numpy_needs_no_torch_namespace() -> None:
    assert namespace(np.zeros(2), 1.0, None) is NUMPY and namespace(1, torch.zeros(1)) is not NUMPY


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_l1_for_batches_of_tensors(case: Case, options: L1Options) -> None:
    def everything(state: DayState, c: Case) -> tuple[Any, ...]:
        caps = l1.caps(state, options)
        rows, many = state.per_thread(), caps.per_thread()
        issue = l1.issue_of(rows, c.sides)
        base = l1.baseline(rows, many, c.sides, options, c.rounds)
        cap = many.of(c.sides)
        mask = l1.time_mask(cap, issue)
        wild = Action(base.quantity * 1.7 - 1, base.price * 1.1, base.day + 2)
        clipped = l1.clip_action(wild, cap, many.budget, c.sides, issue, mask)
        accepts = rule_accepts(c.table, c.goal[..., None, :], cap, many.budget, c.sides, issue)
        thumb = HeuristicL3Executor().decide(base, mask, c.sides, c.rounds, accepts)
        left = l1.SideLeft(state, options, True).cap(state.q_in), l1.SideLeft(state, options, False).cap(state.q_out)
        return (
            caps, base, mask, clipped, accepts, thumb, left, l1.open_mask(mask, base.day),
            goals.economic_goal(state, caps), goals.heuristic_goal(state),
        )  # fmt: skip

    found = everything(tensors(case.state), tensors(case))
    expected = [everything(take(case.state, i), take(case, i)) for i in range(DAYS)]
    compare(found, _stacked(expected), "l1")


def _stacked(rows: list[Any]) -> Any:
    """Rows of equal structures, each a batch of one, as one batch."""
    if isinstance(rows[0], tuple):
        parts = [_stacked([row[i] for row in rows]) for i in range(len(rows[0]))]
        return type(rows[0])(*parts) if hasattr(rows[0], "_fields") else tuple(parts)
    return None if rows[0] is None else np.concatenate([np.asarray(row) for row in rows])


@pytest.mark.parametrize("options", [FeatureOptions(), FeatureOptions(channels=12)], ids=str)
def test_features_for_batches_of_tensors(case: Case, options: FeatureOptions) -> None:
    rng = np.random.default_rng(3)
    row, columns = np.repeat(np.arange(DAYS), 7), rng.random((4, 7 * DAYS))
    side, delta = rng.integers(0, 2, 7 * DAYS), rng.integers(-1, 12, 7 * DAYS) * 1.0
    known = Offers(row, side, delta, 1 + np.floor(9 * columns[0]), 5 + 20 * columns[1], np.floor(20 * columns[2]))

    def everything(state: DayState, c: Case, seen: Offers) -> tuple[Any, ...]:
        slots = offers.offer_slots(state, seen)
        x_static, x_temporal = (
            features.static_features(state, options),
            features.temporal_features(state, slots, options),
        )
        rows, many = state.per_thread(), l1.caps(state, OPTIONS[1]).per_thread()
        issue, base = l1.issue_of(rows, c.sides), l1.baseline(rows, many, c.sides, OPTIONS[1], c.rounds)
        cap = many.of(c.sides)
        there = Negotiations(c.sides, base, cap, l1.time_mask(cap, issue), c.table, c.rounds, c.relative_time)
        thread = features.thread_features(rows, x_temporal[:, None], c.goal[:, None], there)
        priorities = features.priorities(state, slots, options, c.goal, there)
        alpha = HeuristicL4Coordinator().weights(
            features.latest_day(c.table.day, base.day), priorities, c.selling.there
        )
        aux = features.micro_aux(
            rows, many.budget, c.sides, issue, c.relative_time, c.table.day, base.day, c.goal[:, None], rows.q_in
        )
        overall = features.global_features(c.goal, x_static, (~c.sides).sum(-1), c.sides.sum(-1))
        partners = records.features(c.selling.records), records.pooled(c.selling.records, state.day)
        extra = extra_features(state, namespace(state.day).cat([partners[1], partners[1]]))
        return slots, x_static, x_temporal, thread, priorities, alpha, aux, overall, partners, extra

    found = everything(tensors(case.state), tensors(case), tensors(known))
    ones = [
        known._replace(row=0 * row[:7], **{n: getattr(known, n)[7 * i : 7 * i + 7] for n in known._fields[1:]})
        for i in range(DAYS)
    ]
    expected = _stacked([everything(take(case.state, i), take(case, i), ones[i]) for i in range(DAYS)])
    compare(found, expected, "features")
    np.testing.assert_allclose(expected[3][..., 0], expected[4])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_rule_w_and_its_plans_decide_alike_for_batches_of_tensors(case: Case, options: L1Options) -> None:
    def everything(state: DayState, c: Case) -> tuple[Any, ...]:
        caps = l1.caps(state, options)
        sold, bought = l1.issue_of(state, True), l1.issue_of(state, False)
        sell, worth = rule_w.sell(state, caps, c.selling, sold, c.alpha, RuleOptions())
        buy = rule_w.buy(state, caps, c.buying, bought, c.alpha)
        plans = plan(state, options, True, c.selling, sold, sell), plan(state, options, False, c.buying, bought, buy)
        return sell, worth, buy, plans

    found = everything(tensors(case.state), tensors(case))
    expected = _stacked([everything(take(case.state, i), take(case, i)) for i in range(DAYS)])
    compare(found, expected, "rule W")
    for side, there in zip(expected[3], (case.selling.there, case.buying.there)):
        assert not side.unsafe.any() and (side.op[~there] == 2).all()
    made = np.concatenate([side.op[there] for side, there in zip(expected[3], (case.selling.there, case.buying.there))])
    assert np.bincount(made, minlength=3).min() > 20
    whole = everything(case.state, case)
    compare(tensors(whole), expected, "a batch of numpy")
