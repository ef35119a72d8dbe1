"""The potential of a selling factory, on days made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market.logs.daystate import DayState, from_mapping
from marlab.market.rules import worth


def day(**values: object) -> DayState:
    """A first-level factory on day 4 of 10: supply 3 today and 5 on average, cost 2, opening balance 100."""
    base = {name: np.zeros(1) for name in DayState._fields}
    numbers = {
        "day": 4, "n_steps": 10, "n_lines": 10, "n_products": 3, "output_product": 1, "production_cost": 2,
        "initial_balance": 100, "price_in": 10, "price_out": 20, "storage_cost": 0.02, "shortfall_penalty": 0.5,
        "exogenous_in_quantity": 3, "exogenous_in_price": 30, "exogenous_in_mean": 5,
    }  # fmt: skip
    fields = base | {name: np.array([float(value)]) for name, value in numbers.items()}
    fields |= {name: np.zeros((1, 11)) for name in ("q_in", "q_out", "pay", "receive")}
    fields["exogenous_reach"] = np.zeros((1, 10))
    return from_mapping(fields | {name: np.asarray(value, float) for name, value in values.items()})


def at(slot: int, value: float) -> np.ndarray:
    row = np.zeros((1, 11))
    row[0, slot] = value
    return row


def test_a_sale_is_worth_its_price_less_its_cost_and_the_storage_it_saves() -> None:
    before = day()
    after = day(q_out=at(2, 4), receive=at(2, 80))
    gain = 4 * (20 - 2) + 4 * 0.2 * (10 - 6)  # four units of the mean supply of day 6 are not stored for four days
    assert worth.potential(after)[0] == pytest.approx(gain / 100)
    added = worth.contract(before, np.array([[4.0]]), np.array([[20.0]]), np.array([[2.0]]))
    assert added[0, 0] == pytest.approx(gain / 100)


def test_a_middle_factory_saves_no_supply_and_stock_costs_storage() -> None:
    middle = day(input_product=np.ones(1), inventory_input=np.array([6.0]), q_out=at(0, 1), receive=at(0, 20))
    assert worth.potential(middle)[0] == pytest.approx((18 - 6 * 0.2 * 6) / 100)
    assert worth.sunk(middle)[0] == 0


def test_units_that_lines_cannot_make_cost_a_penalty() -> None:
    one, two = day(q_out=at(3, 10), receive=at(3, 200)), day(q_out=at(3, 12), receive=at(3, 240))
    assert (worth.potential(two) - worth.potential(one))[0] == pytest.approx(-2 * 0.5 * 20 / 100)


def test_supply_is_sunk_and_nothing_counts_after_the_end() -> None:
    assert worth.sunk(day())[0] == pytest.approx((30 + 3 * 0.2 * 6) / 100)
    over = day(day=np.array([10.0]), inventory_input=np.array([6.0]), q_out=at(0, 2), receive=at(0, 40))
    assert worth.potential(over)[0] == worth.sunk(over)[0] == 0
