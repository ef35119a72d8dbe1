"""The economic rules of L1: one day of stock, and what to buy and sell first."""

import numpy as np
import pytest

from marlab.market.logs.daystate import HORIZON, DayState
from marlab.market.rules import economic, l1
from marlab.market.rules.l1 import L1Options
from tests.market.days import a_day, random_days, schedule

ECONOMIC = L1Options(rules="economic")


# --- the economic rules ---------------------------------------------------------------------------------------------


def last_level(**given: object) -> DayState:
    """A factory that sells to exogenous buyers."""
    return a_day(input_product=2, output_product=3, storage_cost=0.03, shortfall_penalty=0.6, **given)


def test_economic_caps_hold_one_day_of_stock_and_each_day_alone() -> None:
    state = a_day(day=90, inventory_input=4, q_in=schedule({0: 2, 3: 1}), q_out=schedule({0: 5, 3: 2}))
    caps = l1.caps(state, ECONOMIC)
    assert caps.buy[0] == 10 - 4 - 3 + 5
    assert (caps.buy[1:] == 0).all()
    assert caps.sell[:11].tolist() == [1, 4, 4, 3, 4, 4, 4, 4, 4, 4, 0]
    early = l1.caps(state.replace(day=np.array(10.0)), ECONOMIC)
    assert early.sell[:5].tolist() == [1, 4, 4, 8, 10]


def test_a_first_level_factory_fills_its_stock_before_it_sells_for_today() -> None:
    first = {"input_product": 0, "output_product": 1, "exogenous_in_quantity": 6, "exogenous_in_mean": 5}
    waiting = l1.caps(a_day(inventory_input=3, **first), ECONOMIC)
    assert waiting.sell[:4].tolist() == [0, 7, 10, 10]
    full = l1.caps(a_day(inventory_input=10, **first), ECONOMIC)
    assert full.sell[:3].tolist() == [10, 10, 10]
    base = l1.baseline(a_day(inventory_input=3, **first), waiting, True, ECONOMIC)
    assert base == (7, 22, 2)


def test_the_last_level_buys_todays_sales_and_a_stock_of_ten_once() -> None:
    usual = {"exogenous_out_quantity": 6, "exogenous_out_price": 240, "production_cost": 7, "price_in": 25}
    fresh = last_level(day=0, n_steps=50, price_out=40, exogenous_reach=np.array([1] * 6 + [0] * 4), **usual)
    assert economic.need(fresh) == 16
    assert economic.need(fresh.replace(inventory_input=np.array(10.0))) == 0
    last_day = fresh.replace(day=np.array(49.0), inventory_input=np.array(2.0))
    assert economic.need(last_day) == 4  # nothing is worth keeping after the end
    caps = l1.caps(fresh, ECONOMIC)
    assert l1.baseline(fresh, caps, False, ECONOMIC, round=0) == (4, 22, 0)
    assert l1.baseline(fresh, caps, False, ECONOMIC, round=2) == (4, 27, 0)


def test_a_unit_that_is_served_is_not_stored() -> None:
    """On the last day a unit earns 26 and costs 25: worth buying, because nothing of it is left to be stored (0.75)."""
    state = last_level(
        day=49, n_steps=50, price_in=25, price_out=10, production_cost=7, exogenous_out_quantity=6,
        exogenous_out_price=6 * 27,
    )  # fmt: skip
    assert economic.need(state) == 6
    assert economic.need(state.replace(price_in=np.array(27.0))) == 0


def test_a_middle_factory_stops_buying_eight_days_before_the_end() -> None:
    assert economic.need(a_day(day=91)) == 10 and economic.need(a_day(day=92)) == 0


def test_the_first_level_needs_nothing() -> None:
    assert economic.need(a_day(input_product=0, output_product=1, exogenous_in_quantity=6)) == 0


def test_the_best_purchase_is_the_best_of_all() -> None:
    """Against a plain restatement of the profit, one candidate at a time."""
    states = random_days(60, seed=11)
    for i in range(60):
        day = states.take(i).replace(n_lines=np.array(10.0), q_out=np.zeros(HORIZON + 1))
        sales, price_in = float(day.exogenous_out_quantity), float(day.price_in)
        unit = float(day.exogenous_out_price) / sales if sales else float(day.price_out)
        gain = unit - float(day.production_cost) + float(day.shortfall_penalty * day.price_out)
        storage = float(day.storage_cost) * price_in
        stock, got = float(day.inventory_input), float(day.q_in[0])
        profits = []
        for b in range(21):
            served = min(10, sales, stock + got + b)
            after = min(10, stock + max(0, got + b - served))
            worth = 0.0
            for j in range(1, int(after) + 1):
                prior = sum(seen >= j for seen in (2, 4, 6, 8, 10))
                share = (day.exogenous_reach[j - 1] + prior) / (float(day.day) + 6)
                worth += share * gain - (1 - share) * storage
            worth *= float(day.n_steps - day.day - 1)
            profits.append(served * gain - b * price_in - storage * (stock + got + b - served) + worth)
        assert profits[int(economic.best_purchase(day))] == pytest.approx(max(profits))


def test_a_middle_factory_buys_early_and_sells_late_days_first() -> None:
    fresh = a_day(day=0)
    caps = l1.caps(fresh, ECONOMIC)
    assert l1.baseline(fresh, caps, False, ECONOMIC) == (3, 9, 0)  # ten units over four suppliers
    assert l1.baseline(fresh, caps, True, ECONOMIC) == (7, 22, 3)
    assert l1.baseline(fresh, caps, True, ECONOMIC, round=4) == (10, 22, 3)
    assert l1.baseline(fresh, caps, True, ECONOMIC, round=9) == (10, 22, 3)
    assert l1.baseline(fresh, caps, True, ECONOMIC, round=10) == (10, 18, 3)
    full = a_day(day=0, inventory_input=10)
    assert l1.baseline(full, l1.caps(full, ECONOMIC), False, ECONOMIC).quantity == 0
    ending = a_day(day=93)
    assert l1.baseline(ending, l1.caps(ending, ECONOMIC), False, ECONOMIC).quantity == 0


def test_the_day_to_sell_for_is_a_late_one_with_any_room_up_to_the_last_that_may_be_named() -> None:
    state = a_day(day=0)  # a middle factory: late is from the third day on
    issue = l1.issue_of(state, True)._replace(first=np.array(0.0), last=np.array(3.0))

    def sells(by_day: dict[int, float]) -> tuple[float, float]:
        caps = l1.caps(state, ECONOMIC)._replace(sell=schedule(by_day))
        day, room = economic._sell_day(state, caps, issue)
        return float(day), float(room)

    assert sells({1: 4, 2: 4, 3: 1}) == (3, 1)  # one unit is enough
    assert sells({1: 4, 2: 4, 3: 0.9}) == (1, 4)
    assert sells({3: 5, 4: 9}) == (3, 5)  # the fourth day may not be named
    assert sells({4: 9}) == (1, 0)


def test_caps_have_a_value_for_today_and_every_day_ahead() -> None:
    caps = l1.caps(a_day(day=0), ECONOMIC)
    assert caps.buy.shape == caps.sell.shape == (HORIZON + 1,)
