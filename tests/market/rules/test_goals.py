"""Goals: soft buckets, v2 labels, masks and the rule-of-thumb goals."""

import numpy as np
import pytest

from marlab.market.logs.daystate import DayState, stack
from marlab.market.rules import goals, l1
from marlab.market.rules.goals import BUY, SELL, Trades
from marlab.market.rules.l1 import L1Options
from tests.market.days import a_day, random_days, schedule

NO_TRADES = Trades(np.zeros(0, np.intp), np.zeros(0, np.intp), *(np.zeros(0) for _ in range(4)))


def trades(*rows: tuple[float, ...]) -> Trades:
    """(row, side, delta, quantity, price, weight) of each trade."""
    table = np.array(rows, dtype=np.float64)
    return Trades(table[:, 0].astype(int), table[:, 1].astype(int), *table[:, 2:].T)


def random_trades(days: int, count: int, seed: int) -> Trades:
    rng = np.random.default_rng(seed)
    return Trades(
        rng.integers(0, days, count),
        rng.integers(0, 2, count),
        rng.integers(-1, 45, count).astype(float),
        rng.integers(0, 31, count).astype(float),
        rng.integers(0, 40, count).astype(float),
        rng.random(count),
    )


@pytest.mark.parametrize(
    ("delta", "shares"),
    [
        (0, (1, 0, 0, 0)), (1, (1, 0, 0, 0)), (2, (0.75, 0.25, 0, 0)), (3, (0.25, 0.75, 0, 0)), (5, (0, 1, 0, 0)),
        (7, (0, 0.75, 0.25, 0)), (8, (0, 0.25, 0.75, 0)), (14, (0, 0, 0.75, 0.25)), (15, (0, 0, 0.25, 0.75)),
        (27, (0, 0, 0, 1)),
    ],
)  # fmt: skip
def test_the_worked_vector_of_soft_buckets(delta: int, shares: tuple[float, ...]) -> None:
    assert goals.soft_buckets(np.array(float(delta))).tolist() == list(shares)


def test_soft_buckets_share_one_delivery_between_at_most_two() -> None:
    shares = goals.soft_buckets(np.arange(61.0))
    np.testing.assert_allclose(shares.sum(-1), 1)
    assert ((shares > 0).sum(-1) <= 2).all()
    assert (shares >= 0).all()
    assert goals.bucket_of(np.array([0.0, 2, 3, 7, 8, 14, 15, 40])).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def labelled_day(**given: object) -> DayState:
    return stack([a_day(needed_supplies=12, needed_sales=0, **given)])


DEALS = trades((0, BUY, 2, 4, 9, 1), (0, BUY, 0, 2, 11, 1))
OFFERS = trades((0, BUY, 2, 5, 10, 0.5), (0, SELL, 0, 3, 21, 0.4), (0, SELL, 3, 6, 19, 0.6))
LABEL = [
    [9.5855, 9.8700, 0.3150, 20.3286],
    [2.5285, 9.3500, 0.4050, 19.4250],
    [0.7642, 9.5000, 0.0000, 21.0000],
    [0.3218, 9.5000, 0.0000, 21.0000],
]


def test_the_worked_vector_of_the_label() -> None:
    goal = goals.goal_labels(labelled_day(), DEALS, OFFERS)
    np.testing.assert_allclose(goal.reshape(4, 4), LABEL, atol=5.1e-5)


def test_sides_without_negotiations_have_no_goal() -> None:
    first = goals.goal_labels(labelled_day(input_product=0, output_product=1), DEALS, OFFERS)[0]
    last = goals.goal_labels(labelled_day(input_product=2, output_product=3), DEALS, OFFERS)[0]
    assert (first[~goals.IS_SELLING] == 0).all() and (first[goals.IS_SELLING] > 0).any()
    assert (last[goals.IS_SELLING] == 0).all() and (last[~goals.IS_SELLING] > 0).any()


def test_an_open_need_alone_makes_a_goal() -> None:
    state = stack([a_day(needed_supplies=10)])
    goal = goals.goal_labels(state, NO_TRADES, NO_TRADES).reshape(4, 4)
    np.testing.assert_allclose(goal[:, 0], 6 * goals.SPREAD)
    np.testing.assert_allclose(goals.SPREAD, [0.6369, 0.2123, 0.1061, 0.0447], atol=5e-5)
    np.testing.assert_allclose(goal[:, 1], 9.5)
    assert (goal[:, 2] == 0).all()


def plain_label(day: DayState, deals: Trades, offers: Trades, row: int) -> np.ndarray:
    """The definition again, day by day and bucket by bucket."""
    goal = np.zeros((4, 2, 2))
    for side, (spot, need) in enumerate(
        [(float(day.price_in), float(day.needed_supplies)), (float(day.price_out), float(day.needed_sales))]
    ):

        def cut(table: Trades, side: int = side) -> list[tuple[float, float, np.ndarray, float]]:
            return [
                (q, p, goals.soft_buckets(np.array(max(0.0, delta))), w)
                for r, s, delta, q, p, w in zip(*table)
                if r == row and s == side and q > 0 and p > 0
            ]

        mine, theirs = cut(deals), cut(offers)
        dealt = [sum(q * w * share[b] for q, _, share, w in mine) for b in range(4)]
        wished = [sum(q * w * share[b] for q, _, share, w in theirs) for b in range(4)]
        for b in range(4):
            quantity = dealt[b] + 0.6 * max(0, need) * goals.SPREAD[b]
            if sum(dealt) == 0 and sum(wished) > 0:
                quantity += 0.15 * wished[b]
            deal = sum(q * p * w * share[b] for q, p, share, w in mine) / dealt[b] if dealt[b] else 0
            wish = sum(q * p * w * share[b] for q, p, share, w in theirs) / wished[b] if wished[b] else 0
            if not dealt[b] and wished[b]:
                total = 0.0
                for price, weight in sorted((p, q * w * share[b]) for q, p, share, w in theirs if share[b] > 0):
                    total += weight
                    if total >= wished[b] / 2 - 1e-12:
                        wish = (wish + price) / 2
                        break
            if dealt[b] and wished[b]:
                price = 0.65 * deal + 0.25 * wish + 0.10 * spot
            elif dealt[b]:
                price = 0.775 * deal + 0.225 * spot
            elif wished[b]:
                price = 0.575 * wish + 0.425 * spot
            else:
                price = spot * (0.95, 1.05)[side]
            goal[b, side] = quantity, price
    allowed = np.array([bool(day.can_buy), bool(day.can_sell)])
    return (goal * allowed[:, None]).ravel()


def test_batched_labels_equal_the_definition() -> None:
    states = random_days(40, seed=1)
    deals = random_trades(40, 60, seed=2)._replace(weight=np.ones(60))
    offers = random_trades(40, 300, seed=3)
    batched = goals.goal_labels(states, deals, offers)
    for i in range(40):
        np.testing.assert_allclose(batched[i], plain_label(states.take(i), deals, offers, i), atol=1e-9)


def test_usable_goals_are_positive_and_keep_to_the_roles() -> None:
    rng = np.random.default_rng(4)
    states = random_days(300, seed=5)
    goal = goals.mask_goal(rng.normal(0, 5, (300, 16)), goals.roles(states))
    assert (goal >= 0).all()
    assert (goal[~states.can_buy][:, ~goals.IS_SELLING] == 0).all()
    assert (goal[~states.can_sell][:, goals.IS_SELLING] == 0).all()
    assert (goal[states.can_buy][:, ~goals.IS_SELLING] > 0).any()


def test_parts_of_a_goal() -> None:
    goal = np.arange(16.0)
    assert goals.part(goal, False, np.array(2)) == (8, 9)
    assert goals.part(goal, True, np.array(2)) == (10, 11)
    quantity, price = goals.part(np.stack([goal, goal + 100]), np.array([True, False]), np.array([0, 3]))
    assert quantity.tolist() == [2, 112] and price.tolist() == [3, 113]


def test_the_rule_of_thumb_goal() -> None:
    state = a_day(day=50, inventory_input=4, q_in=schedule({0: 3}), q_out=schedule({0: 2}))
    goal = goals.heuristic_goal(state).reshape(4, 4)
    np.testing.assert_allclose(goal[:, 0], np.array([1, 0.8, 0.6, 0.4]) * 6 / 4)
    np.testing.assert_allclose(goal[:, 1], 10 * (1 - 0.1 * np.array([1, 0.8, 0.6, 0.4])))
    np.testing.assert_allclose(goal[:, 2], np.array([1, 0.8, 0.6, 0.4]) * 5 / 4)
    early = goals.heuristic_goal(state.replace(day=np.array(10.0))).reshape(4, 4)
    late = goals.heuristic_goal(state.replace(day=np.array(90.0))).reshape(4, 4)
    np.testing.assert_allclose([early[0, 0], late[0, 0]], [1.5 * 1.5, 1.5 * 0.5])
    np.testing.assert_allclose([early[0, 2], late[0, 2]], [1.25 * 0.5, 1.25 * 2])


def test_the_economic_goal_buys_at_once_and_sells_the_room() -> None:
    options = L1Options(rules="economic")
    state = a_day(day=0, q_out=schedule({4: 6}))
    goal = goals.economic_goal(state, l1.caps(state, options)).reshape(4, 4)
    assert goal[:, 0].tolist() == [10, 0, 0, 0]
    assert goal[:, 2].tolist() == [0, 44, 30, 0]
