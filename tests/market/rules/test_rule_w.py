"""Rule W: what it buys, what it offers to whom, and what it takes."""

from __future__ import annotations

import numpy as np

from marlab.market.agent.decide import RuleW
from marlab.market.agent.plan import Answer, make_plan
from marlab.market.agent.threads import Thread
from marlab.market.logs.daystate import DayState
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import economic
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.partners import PartnerBook
from marlab.market.rules.round_state import heuristic_weights
from tests.market.agent.test_plan import RULES, sellers, situation
from tests.market.days import a_day


def answers(
    state: DayState, threads: list[Thread], book: PartnerBook | None = None, options: RuleOptions | None = None
) -> dict[str, Answer]:
    at = situation(state, threads, RULES["economic"], book)
    alpha = heuristic_weights(at)
    return make_plan(at, RuleW(options)(at, alpha), alpha).answers


def test_a_middle_factory_fills_its_stock_before_it_sells_for_today() -> None:
    threads = [Thread("c", selling=True, round=0, received=(2, 10, 22))]
    bought = np.zeros(41)
    bought[0] = 5
    filling = a_day(inventory_input=5, q_in=bought)
    assert answers(filling, threads)["c"].op == REJECT
    assert answers(filling, threads, options=RuleOptions(fill_first=False))["c"].op == ACCEPT
    assert answers(a_day(inventory_input=10), threads)["c"].op == ACCEPT


def test_the_need_is_taken_from_the_largest_offers_and_the_rest_is_split() -> None:
    state = a_day()  # a middle factory without stock: it needs ten units
    assert economic.need(state) == 10
    found = answers(state, sellers((3, 10, 11), (6, 10, 11), (4, 11, 9), None))
    assert found["p1"].op == found["p0"].op == ACCEPT  # nine of ten, at the highest price
    offered = [found[p].offer for p in ("p2", "p3") if found[p].op == REJECT]
    assert offered == [(1, 10, 11)]  # one is left; asking two would exceed the cap if both agreed


def test_one_unit_too_many_is_taken_only_of_a_large_need() -> None:
    last = a_day(input_product=2, output_product=3, exogenous_out_quantity=5, exogenous_out_price=150, n_steps=11)
    need = int(economic.need(last))
    assert need >= 4
    caps_allow = 10 + 5
    assert answers(last, sellers((min(need + 1, caps_allow), 10, 10)))["p0"].op == ACCEPT
    assert answers(last, sellers((need + 2, 10, 10)))["p0"].op == REJECT


def test_without_a_need_buying_ends() -> None:
    found = answers(a_day(inventory_input=10), sellers((3, 10, 9), None))
    assert [a.op for a in found.values()] == [END, END]
    assert answers(a_day(day=95), sellers((3, 95, 9)))["p0"].op == END  # the last days of a middle factory


def test_prices_rise_when_time_passes() -> None:
    for round, price in ((0, 9), (1, 9), (2, 11)):
        threads = [Thread("p", selling=False, round=round)]
        assert answers(a_day(), threads)["p"].offer == (10, 10, price)


def test_sales_of_a_round_share_the_room_of_their_days() -> None:
    state = a_day(inventory_input=10, n_steps=12)  # today and tomorrow are left
    threads = [Thread(f"c{k}", selling=True, round=3) for k in range(4)]
    found = answers(state, threads)
    offers = [a.offer for a in found.values() if a.offer]
    assert len(offers) == 2 and {offer[1] for offer in offers} == {10, 11}
    assert all(offer[0] == 10 and offer[2] == 22 for offer in offers)
    assert [a.op for a in found.values()].count(END) == 2


def test_a_first_level_factory_holds_back_todays_sales_until_its_stock_is_full() -> None:
    first = {"input_product": 0, "output_product": 1, "exogenous_in_quantity": 8.0, "exogenous_in_mean": 8.0}
    threads = [Thread("c", selling=True, round=0, received=(5, 10, 22))]
    assert answers(a_day(**first), threads)["c"].op == REJECT
    assert answers(a_day(**first, inventory_input=10), threads)["c"].op == ACCEPT
