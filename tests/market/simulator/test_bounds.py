"""Bounds of a factory: by hand, against the closed form, and against each other on random games."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from marlab.market.simulator.bounds import Foresight, best_score, captured_score, factory_bounds, no_trade_score
from marlab.market.simulator.settlement import Economy, settle
from tests.market.sample_tools import empty_table


def game(days: int, **more: object) -> Foresight:
    """A middle factory at constant prices: buys at 18, sells at 30, produces for 5."""
    zeros, none = np.zeros(days), np.zeros(days, dtype=np.int64)
    plain = Foresight(
        balance=1000.0, lines=10, cost=5.0, supply=none, bill=zeros, demand=none, demand_price=zeros, delivered=none,
        storage=zeros + 0.5, penalty=zeros + 12.0, buy_price=zeros + 18.0, sell_price=zeros + 30.0, buys=True,
        sells=True,
    )  # fmt: skip
    return replace(plain, **more)  # type: ignore[arg-type]


def test_a_middle_factory_has_a_closed_form() -> None:
    """20 units are bought on the first day, 10 of them are left that evening and serve the whole game."""
    known = game(20)
    closed = 1 + (10 * 20 * (30 - 5) - 20 * 18 - 10 * 0.5) / 1000
    assert best_score(known) == pytest.approx(closed)
    assert no_trade_score(known) == 1.0


def test_prices_that_move_are_foreseen() -> None:
    """Input costs 40 on the first day and 1 afterwards: waiting a day is better than buying stock dear."""
    prices = np.array([40.0, 1.0, 1.0, 1.0])
    assert best_score(game(4, buy_price=prices)) == pytest.approx(1 + (3 * 250 - 20 - 5.0) / 1000)


def test_a_last_factory_by_hand() -> None:
    """Demand 4 on three days at 40: 8 are bought on the first day, the 4 that are left serve the other two."""
    known = game(3, demand=np.array([4, 4, 4]), demand_price=np.full(3, 40.0), sells=False)
    assert no_trade_score(known) == pytest.approx(1 - 3 * 4 * 12 / 1000)
    assert best_score(known) == pytest.approx(1 + (12 * (40 - 5) - 8 * 18 - 4 * 0.5) / 1000)


def test_a_first_factory_by_hand() -> None:
    """Supplies of 6 a day at 10 are paid whether they are sold or not; sold units do not become stock."""
    known = game(3, supply=np.array([6, 6, 6]), bill=np.full(3, 60.0), buys=False)
    assert no_trade_score(known) == pytest.approx(1 - (180 + 0.5 * (6 + 12 + 18)) / 1000)
    # 2 are sold on the first day, the 4 that are kept make 10 of every later 6: 22 units, 4 left over for one night
    held = 22 * 25 - 180 - 0.5 * 4
    assert best_score(known) == pytest.approx(1 + held / 1000)


def brute_force(known: Foresight, limit: int) -> float:
    """Every combination of purchases and sales up to a limit."""
    best = -np.inf
    moves = list(product(range(limit + 1 if known.buys else 1), range(known.lines + 1 if known.sells else 1)))
    for plan in product(moves, repeat=known.days):
        stock, money = 0, 0.0
        for day, (bought, sold) in enumerate(plan):
            arriving, owed = known.supply[day] + bought, known.demand[day] + sold
            produced = min(stock + arriving, known.lines, owed)
            market = min(produced, known.demand[day])
            money += market * known.demand_price[day] + (produced - market) * known.sell_price[day]
            money -= bought * known.buy_price[day] + known.bill[day] + known.cost * produced
            money -= known.storage[day] * (stock + arriving - produced) + known.penalty[day] * (owed - produced)
            stock += max(0, arriving - produced)
        best = max(best, money)
    return 1 + best / known.balance


@pytest.mark.parametrize("kind", ["first", "middle", "last"])
def test_no_plan_is_better(kind: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(3):
        days, lines = 3, 2
        known = game(
            days, lines=lines, storage=rng.uniform(0, 2, days), penalty=rng.uniform(0, 20, days),
            buy_price=rng.uniform(5, 30, days), sell_price=rng.uniform(10, 40, days), buys=kind != "first",
            sells=kind != "last",
        )  # fmt: skip
        if kind == "first":
            known = replace(known, supply=rng.integers(0, 5, days), bill=rng.uniform(0, 50, days))
        if kind == "last":
            known = replace(known, demand=rng.integers(0, 5, days), demand_price=rng.uniform(10, 50, days))
        assert best_score(known) == pytest.approx(brute_force(known, 2 * lines))


def test_captured_serves_what_anybody_delivered() -> None:
    """The day's deliveries are 3, 15, 4: 10 lines, stock bought on the first day, with or without sales on it."""
    known = game(3, delivered=np.array([3, 15, 4]))
    at_once = 17 * 25 - 13 * 18 - 0.5 * (10 + 0 + 6)
    waiting = 14 * 25 - 10 * 18 - 0.5 * (10 + 0 + 6)
    assert captured_score(known) == pytest.approx(1 + max(at_once, waiting) / 1000)
    assert captured_score(game(3)) == 1.0  # nobody delivered anything: better not to trade


def test_captured_holds_supplies_back_if_that_pays() -> None:
    """6 supplied a day, 10 wanted from the second day on: holding back one day sells 20 instead of 18."""
    known = game(3, supply=np.array([6, 6, 6]), bill=np.zeros(3), delivered=np.array([6, 10, 10]), buys=False)
    sold_at_once = 18 * 25
    held_one_day = 20 * 25 - 0.5 * (6 + 2 + 2)
    assert captured_score(known) == pytest.approx(1 + max(sold_at_once, held_one_day) / 1000)


def test_bounds_are_ordered_in_a_settled_world() -> None:
    """Two levels of two; one delivery of 5 units between them on day 1."""
    days = 6
    contracts = empty_table("contracts")
    rows = [(-1, 0, 0, 7, d, 10) for d in range(days)] + [(2, -1, 2, 5, d, 25) for d in range(days)]
    rows.append((0, 2, 1, 5, 1, 15))
    for place, name in enumerate(("seller", "buyer", "product", "quantity", "delivery", "price")):
        contracts[name] = np.array([row[place] for row in rows])
    economy = Economy(
        level=np.array([0, 0, 1, 1]),
        lines=np.full(4, 10),
        cost=np.array([2.0, 2.0, 4.0, 4.0]),
        balance=np.full(4, 900.0),
        storage=np.full((4, days), 0.03),
        shortfall=np.full((4, days), 0.6),
        catalogue=np.array([10.0, 15.0, 25.0]),
    )
    settled = settle(economy, contracts)
    for factory in range(4):
        found = factory_bounds(economy, contracts, settled, factory)
        assert found.no_trade <= found.captured <= found.mean_price + 1e-9 <= found.issue + 2e-9
        assert found.no_trade <= settled.balance[-1, factory] / settled.balance[0, factory] <= found.issue
    assert factory_bounds(economy, contracts, settled, 3).issue == pytest.approx(1.0)  # no demand: nothing to gain
