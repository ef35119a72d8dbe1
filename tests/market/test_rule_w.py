"""Rule W: what it buys, what it offers to whom, and what it takes."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market import economic
from marlab.market.agent_decide import heuristic_weights
from marlab.market.agent_plan import Answer, make_plan
from marlab.market.agent_threads import Thread
from marlab.market.daystate import DayState
from marlab.market.logs import ACCEPT, END, REJECT
from marlab.market.partners import Ended, PartnerBook, Record
from marlab.market.rule_w import Lot, RuleW, Seat, sale, takes
from marlab.market.safety import Ledger
from tests.market.days import a_day
from tests.market.test_agent_plan import RULES, sellers, situation

HIGH, LOW = 22.0, 18.0


def seat(round: int = 0, opening: bool = False, **known: int) -> Seat:
    return Seat(round, opening, LOW, HIGH, Record(**known))


def answers(state: DayState, threads: list[Thread], book: PartnerBook | None = None) -> dict[str, Answer]:
    at = situation(state, threads, RULES["economic"], book)
    alpha = heuristic_weights(at)
    return make_plan(at, RuleW()(at, alpha), alpha, Ledger(state, RULES["economic"])).answers


@pytest.mark.parametrize(
    ("who", "lot"),
    [
        (seat(4, patient_highest=1), (10, HIGH, "emptiest")),
        (seat(4, patient_highest=1, patient_lowest=2), (10, HIGH, "emptiest")),  # round 4: still the highest price
        (seat(12, patient_highest=1, patient_lowest=2), (10, LOW, "emptiest")),
        (seat(3, patient_lowest=2), (10, LOW, "emptiest")),
        (seat(5, patient_lowest=2), (2, LOW, "today")),
        (seat(5), (5, HIGH, "emptiest")),
        (seat(13), (2, LOW, "today")),
        (seat(0, opening=True), (7, HIGH, "latest")),
        (seat(2, opening=True), (2, (HIGH + LOW) / 2, "latest")),
        (seat(0), (3, HIGH, "today")),
        (seat(1, failures_in_a_row=2), (1, (HIGH + LOW) / 2, "today")),
        (seat(0, last_lot=9), (7, HIGH, "emptiest")),
        (seat(2, last_lot=9, failures_in_a_row=1), (1, LOW, "today")),
    ],
)
def test_lots_suit_the_partner(who: Seat, lot: tuple[int, float, str]) -> None:
    found: Lot = sale(who)
    assert (found.quantity, found.price, found.day) == lot


def test_a_partner_known_to_bargain_is_patient_from_the_start() -> None:
    record = Record()
    for _ in range(5):
        record.add(Ended(0, "p", True, 20, 0, 0, 18, 22))
    assert Seat(0, False, LOW, HIGH, record).patient and not seat(2).patient and seat(3).patient


@pytest.mark.parametrize(
    ("who", "quantity", "price", "taken"),
    [
        (seat(0, opening=True), 3, HIGH, True),
        (seat(0, opening=True), 4, LOW, False),
        (seat(0, opening=True), 5, LOW, True),
        (seat(1, opening=True), 1, LOW, True),
        (seat(0), 1, LOW, True),
        (seat(5), 9, LOW, False),
        (seat(11), 7, LOW, True),
        (seat(11), 6, LOW, False),
        (seat(17), 1, LOW, True),
        (seat(11, patient_highest=1), 7, LOW, False),
        (seat(18, patient_highest=1), 7, LOW, False),
        (seat(11, patient_highest=1), 8, LOW, True),
    ],
)
def test_what_is_taken(who: Seat, quantity: int, price: float, taken: bool) -> None:
    assert takes(who, quantity, price) == taken


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


def test_the_day_belongs_to_the_thread_and_its_round() -> None:
    state = a_day(inventory_input=10)
    days = set()
    for round in range(3, 10):
        one = answers(state, [Thread("c", selling=True, round=round)])["c"].offer
        again = answers(state, [Thread("c", selling=True, round=round)])["c"].offer
        assert one == again and one is not None
        days.add(one[1])
    assert len(days) > 2 and all(np.isin(list(days), np.arange(10, 21)))
