"""Rule W: what it buys, what it offers to whom, and what it takes."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.agent.decide import heuristic_weights
from marlab.market.agent.plan import Answer, make_plan
from marlab.market.agent.rule import RuleW
from marlab.market.agent.rule_sell import Day, Lot, Seat, day_for, sale, takes, worth_waiting
from marlab.market.agent.settings import AgentSettings, RuleOptions
from marlab.market.agent.threads import Thread
from marlab.market.logs.daystate import DayState
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import economic
from marlab.market.rules.partners import Ended, Heard, PartnerBook, Record
from marlab.market.rules.safety import Ledger
from tests.market.agent.test_plan import RULES, sellers, situation
from tests.market.days import a_day

HIGH, LOW = 22.0, 18.0


def seat(round: int = 0, opening: bool = False, **known: int) -> Seat:
    return Seat(round, opening, LOW, HIGH, Record(**known))


def answers(
    state: DayState, threads: list[Thread], book: PartnerBook | None = None, options: RuleOptions | None = None
) -> dict[str, Answer]:
    at = situation(state, threads, RULES["economic"], book)
    alpha = heuristic_weights(at)
    return make_plan(at, RuleW(options)(at, alpha), alpha, Ledger(state, RULES["economic"])).answers


@pytest.mark.parametrize(
    ("who", "lot"),
    [
        (seat(4, patient_highest=1), (10, HIGH, "nearest")),
        (seat(4, patient_highest=1, patient_lowest=2), (10, HIGH, "next")),  # round 4: still the highest price
        (seat(12, patient_highest=1, patient_lowest=2), (10, LOW, "next")),
        (seat(3, patient_lowest=2), (10, LOW, "next")),
        (seat(5, patient_lowest=2), (2, LOW, "today")),
        (seat(5), (10, HIGH, "next")),
        (seat(13), (2, LOW, "today")),
        (seat(0, opening=True), (7, HIGH, "fullest")),
        (seat(1, opening=True), (5, (HIGH + LOW) / 2, "fullest")),
        (seat(2, opening=True), (3, LOW, "fullest")),
        (seat(0), (3, LOW, "fullest")),
        (seat(2), (1, LOW, "fullest")),
    ],
)
def test_lots_suit_the_partner(who: Seat, lot: tuple[int, float, str]) -> None:
    found: Lot = sale(who)
    assert (found.quantity, found.price, found.day) == lot


def test_who_only_asks_for_today_is_offered_today() -> None:
    asked = Record(heard=deque([Heard(2, 0.0, 0), Heard(1, 0.5, 0)]))
    assert sale(Seat(0, False, LOW, HIGH, asked)).day == "today"
    asked.heard.append(Heard(2, 0.0, 3))
    assert sale(Seat(0, False, LOW, HIGH, asked)).day == "fullest"


@pytest.mark.parametrize(
    ("day", "quantity", "found"),
    [
        ("today", 2, 0),
        ("nearest", 2, 0),
        ("nearest", 10, 2),
        ("nearest", 12, 2),  # nothing holds twelve: the first of the emptiest
        ("next", 2, 1),
        ("next", 10, 2),
        ("fullest", 2, 1),
        ("fullest", 3, 4),  # the latest of equals
        ("fullest", 5, 5),
    ],
)
def test_days_with_room(day: Day, quantity: int, found: int) -> None:
    room = np.array([3.0, 2, 10, 0, 3, 10])
    assert day_for(Lot(quantity, HIGH, day, ""), room) == found


def test_without_room_today_a_small_lot_fills_up_another_day() -> None:
    assert day_for(Lot(2, LOW, "today", ""), np.array([0.0, 10, 4])) == 2
    assert day_for(Lot(10, LOW, "next", ""), np.array([10.0, 4, 4])) == 0  # no other day holds it


def test_a_partner_known_to_bargain_is_patient_from_the_start() -> None:
    record = Record()
    for _ in range(5):
        record.add(Ended(0, "p", True, 20, 0, 0, 18, 22))
    assert Seat(0, False, LOW, HIGH, record).patient and not seat(2).patient and seat(3).patient
    assert seat(0, offers=20, left=1).patient and not seat(0, offers=20, left=5).patient


@pytest.mark.parametrize(
    ("who", "quantity", "price", "taken"),
    [
        (seat(0, opening=True), 3, HIGH, True),
        (seat(0, opening=True), 4, LOW, False),
        (seat(0, opening=True), 5, LOW, True),
        (seat(1, opening=True), 1, LOW, True),
        (seat(0), 1, LOW, True),
        (seat(5), 9, LOW, False),
        (seat(5), 9, HIGH, True),
    ],
)
def test_what_is_taken_of_a_stranger(who: Seat, quantity: int, price: float, taken: bool) -> None:
    assert takes(who, quantity, price, 1) == taken


def test_waiting_is_worth_the_best_of_what_may_come() -> None:
    offers = np.array([0.0, 100.0])
    assert worth_waiting(offers, taken=0, lot=0, rounds=0, leaving=0) == 0
    assert worth_waiting(offers, taken=0, lot=0, rounds=1, leaving=0) == 50
    assert worth_waiting(offers, taken=0, lot=0, rounds=2, leaving=0) == 75  # 100, or 50 for going on
    assert worth_waiting(offers, taken=0, lot=0, rounds=1, leaving=0.5) == 25
    assert worth_waiting(np.zeros(1), taken=0.1, lot=100, rounds=19, leaving=0) == pytest.approx(100 * (1 - 0.9**19))


def test_offers_are_weighed_against_what_the_partner_usually_offers() -> None:
    stays = Record(heard=deque([Heard(q, 0.0, 1) for q in (2, 2, 2, 10)]), offers=40)
    leaves = Record(heard=stays.heard, offers=40, left=30)
    for record, round, taken in ((stays, 2, False), (stays, 19, True), (leaves, 2, True)):
        assert takes(Seat(round, False, LOW, HIGH, record, cost=5), 2, LOW, 1) == taken
    assert takes(Seat(2, False, LOW, HIGH, stays, cost=5), 10, LOW, 1)
    empty, full = Seat(2, False, LOW, HIGH, stays, cost=5), Seat(2, False, LOW, HIGH, stays, room=np.full(2, 2.0))
    assert full.waiting is not None and empty.waiting is not None
    assert full.waiting < 2 * HIGH < empty.waiting  # ten units for tomorrow no longer fit: waiting for them is vain


def test_no_lot_is_smaller_than_waiting_is_worth() -> None:
    record = Record(heard=deque([Heard(10, 0.0, 0)] * 8), offers=60, patient_lowest=2)
    early, late = (Seat(round, False, LOW, HIGH, record, cost=5) for round in (2, 17))
    assert early.waiting is not None and early.waiting > 8 * (LOW - 5)
    assert sale(early).quantity >= 9
    nothing = Record(heard=deque([Heard(30, 0.0, 0)] * 8), offers=60, patient_lowest=2)
    assert sale(Seat(17, False, LOW, HIGH, nothing, cost=5)).quantity == 2
    assert late.waiting is not None


def test_large_cheap_requests_for_today_wait_until_the_partner_pays_more() -> None:
    asks = deque([Heard(10, 0.0, 0)] * 8)
    stays = Record(heard=asks, offers=60, late_offers=50)

    def taken(round: int, price: float = LOW, ahead: int = 0, record: Record = stays, hold: int = 18) -> bool:
        return takes(Seat(round, False, LOW, HIGH, record, RuleOptions(hold=hold), cost=5), 10, price, ahead)

    assert not taken(2) and not taken(17) and taken(18) and taken(5, HIGH)
    assert taken(5, ahead=1) and taken(5, hold=0)
    assert taken(5, record=Record(heard=asks, offers=60, left=20, late_offers=50, late_left=5))


def test_what_is_remembered_of_a_negotiation() -> None:
    record = Record()
    thread = Thread("p", True, [(10, 22, 1, True), (3, 18, 0, False), (5, 20, 2, True)], round=1, proposed=(5, 12, 20))
    talk = thread.talk(5, LOW, HIGH)
    assert (talk.offers, talk.taken, talk.left) == (2, 5, False) and talk.heard == [Heard(3, 0.0, 0)]
    record.bargained(talk.heard, talk.offers, talk.taken, talk.left)
    assert (record.offers, record.taken, record.taken_units, record.left) == (2, 1, 5, 0)
    left = thread.talk(0, LOW, HIGH)
    assert left.left and left.taken == 0
    thread.proposed = None  # I took the partner's offer, or ended it
    assert thread.talk(3, LOW, HIGH).taken == 0 and not thread.talk(0, LOW, HIGH).left


def test_a_partner_stays_unless_it_is_known_to_leave_late() -> None:
    record = Record()
    assert record.stays and record.leaving == 0.5
    record.bargained([], 3, 0, True)  # left early: tells nothing about later rounds
    assert record.stays and record.leaving == 0.4
    record.bargained([], 12, 0, True)
    assert not record.stays


def test_a_middle_factory_fills_its_stock_before_it_sells_for_today() -> None:
    threads = [Thread("c", selling=True, round=0, received=(2, 10, 22))]
    bought = np.zeros(41)
    bought[0] = 5
    filling = a_day(inventory_input=5, q_in=bought)
    assert answers(filling, threads)["c"].op == REJECT
    assert answers(filling, threads, options=RuleOptions(fill_first=False))["c"].op == ACCEPT
    assert answers(a_day(inventory_input=10), threads)["c"].op == ACCEPT


@pytest.mark.parametrize(
    "wrong",
    [{"opening_lots": ()}, {"opening_lots": (0,)}, {"small_lot": 31}, {"small_price": 1.5}, {"opening_prices": (2.0,)},
     {"opening_days": -1}, {"hold": -1}, {"loss": 1.0}],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"rule.{next(iter(wrong))}"):
        RuleOptions(**wrong)


def test_options_reach_the_rule_by_name_and_unknown_ones_are_refused() -> None:
    told = AgentSettings(mode="heuristic", rule={"opening_days": 5, "opening_lots": [6, 4]})
    assert told.rule_options() == RuleOptions(opening_days=5, opening_lots=(6, 4))
    with pytest.raises(UserError, match="unknown key 'opening_day'"):
        AgentSettings(mode="heuristic", rule={"opening_day": 5})


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
