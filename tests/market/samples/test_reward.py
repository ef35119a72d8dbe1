"""What a day earned: rewards that add up to the game, and say at once what a purchase or a sale is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from marlab.market.logs.daystate import DayState
from marlab.market.logs.worldlog import AgentLog
from marlab.market.rules.economic import worth_of_stock
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from marlab.market.samples.reward import rewards, sales_a_day, signed_worth, worth
from tests.market.days import a_day
from tests.market.sample_tools import tracked_logs

LOGS = tracked_logs()
IDS = [f"{log.agent_type}-{log.index}" for log in LOGS]


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_rewards_of_a_game_add_up_to_what_it_earned(log: AgentLog) -> None:
    """The worth of stock and contracts is a potential: it comes earlier, and nothing is added."""
    earned = log.final_balance - log.days.balance[0]
    bills = 0.0 if log.days.can_buy[0] else log.days.exogenous_in_price.sum()
    first = worth(log.days, sales_a_day(log))[0]
    assert rewards(log).sum() == pytest.approx(earned + bills - first, rel=1e-9, abs=1e-6)
    np.testing.assert_allclose(extract(log, SampleOptions()).macro["reward"], rewards(log), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_a_day_whose_next_morning_is_not_told_has_no_reward(log: AgentLog) -> None:
    gap = replace(log, days=log.days.take(np.arange(len(log.days)) != 3), final_balance=float("nan"))
    unknown = np.isnan(extract(gap, SampleOptions()).macro["reward"])
    assert unknown.tolist() == [i in (2, len(log.days) - 2) for i in range(len(log.days) - 1)]


def value(**changes: object) -> float:
    return float(worth(_batch(a_day(**changes)), np.array([2.0]))[0])


def _batch(state: DayState) -> DayState:
    return DayState(*(np.asarray(field)[None] for field in state))


MIDDLE = {"day": 10, "n_steps": 60, "n_lines": 10, "input_product": 1, "output_product": 2, "n_products": 4,
          "price_in": 10, "price_out": 20, "production_cost": 4, "storage_cost": 0.03, "shortfall_penalty": 0.6,
          "inventory_input": 0, "inventory_output": 0}  # fmt: skip


def test_stock_of_a_middle_factory_is_worth_what_it_lets_it_sell_and_more_of_it_costs_storage() -> None:
    empty, full = value(**MIDDLE), value(**{**MIDDLE, "inventory_input": 10})
    assert full - empty == pytest.approx(50 * (20 - 4) * 2)  # 50 days left, 2 units a day
    assert value(**{**MIDDLE, "inventory_input": 15}) - full == pytest.approx(-5 * 0.03 * 10 * 50)


def test_signed_contracts_count_at_once() -> None:
    nothing = np.zeros(41)
    three = np.eye(41)[3]
    bought = {**MIDDLE, "q_in": 10 * three, "pay": 100 * three}
    assert value(**bought) - value(**MIDDLE) == pytest.approx(50 * 16 * 2 - 100)  # goods under way are stock
    sold = {**MIDDLE, "q_in": nothing, "q_out": 7 * three, "receive": 140 * three}
    assert value(**sold) - value(**MIDDLE) == pytest.approx(140 - 7 * 4)
    oversold = {**MIDDLE, "q_out": 12 * three, "receive": 240 * three}  # two more than the lines can make
    assert value(**oversold) - value(**MIDDLE) == pytest.approx(200 - 40 - 2 * 0.6 * 20)
    assert signed_worth(_batch(a_day(**sold)))[0] == pytest.approx(112)


def test_the_first_level_values_no_stock_but_pays_for_too_much_and_the_last_by_its_sales() -> None:
    first = {**MIDDLE, "input_product": 0, "output_product": 1}
    assert value(**{**first, "inventory_input": 10}) == value(**first)
    assert value(**{**first, "inventory_input": 20}) < value(**first)
    last = {**MIDDLE, "input_product": 2, "output_product": 3}
    some = a_day(**{**last, "inventory_input": 6})
    assert value(**{**last, "inventory_input": 6}) == pytest.approx(float(worth_of_stock(some, some.inventory_input)))
    assert value(**{**last, "inventory_input": 6}) > value(**last)


def test_sales_a_day_know_nothing_of_the_day_itself() -> None:
    log = LOGS[0]
    before = sales_a_day(log)
    later = {**log.contracts, "quantity": np.where(log.contracts["day"] >= 5, 30, log.contracts["quantity"])}
    after = sales_a_day(replace(log, contracts=later))
    np.testing.assert_array_equal(before[:6], after[:6])
    assert before[0] == pytest.approx(2 * 5 / (10 + 5))
