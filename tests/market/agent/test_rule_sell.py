"""How rule W sells: lots, days and prices that suit the partner."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from marlab.market.agent.rule_sell import Day, Lot, Seat, day_for, sale, takes, worth_waiting
from marlab.market.agent.settings import RuleOptions
from marlab.market.rules.partners import Ended, Heard, Record

HIGH, LOW = 22.0, 18.0


def seat(round: int = 0, opening: bool = False, **known: int) -> Seat:
    return Seat(round, opening, LOW, HIGH, Record(**known))


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
