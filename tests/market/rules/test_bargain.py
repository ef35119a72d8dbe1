"""How rule W sells: lots, days and prices that suit the partner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from marlab.market.logs.daystate import Array
from marlab.market.rules import bargain, records
from marlab.market.rules.bargain import SALE_REASONS, RuleOptions, Terms
from marlab.market.rules.l1 import Action
from marlab.market.rules.plan import FULLEST, NEAREST, NEXT, TODAY, Threads
from marlab.market.rules.prospects import Prospects
from marlab.market.rules.records import Records

HIGH, LOW = 22.0, 18.0
NO_OFFER = Action(*(np.full((1, 1), np.nan),) * 3)
NOTHING_HEARD = Action(*(np.zeros((1, 1, 0)),) * 3)


def record(heard: Sequence[tuple[float, float, float]] = (), **known: float) -> Records:
    """One partner with some numbers known, and with offers (quantity, position of the price, days ahead)."""
    empty = records.empty((1, 1))
    told = Action(*np.array(heard, np.float64).reshape(-1, 3).T[:, None, None])
    yes = np.ones((1, 1), bool)
    full = records.after_talks(empty, yes, told, np.zeros((1, 1)), np.zeros((1, 1)), ~yes)
    return full._replace(**{name: np.full((1, 1), float(value)) for name, value in known.items()})


@dataclass(frozen=True)
class Seat:
    """One selling thread, and what the rule says about it."""

    round: int
    opening: bool = False
    known: Records = field(default_factory=record)
    options: RuleOptions = field(default_factory=RuleOptions)
    cost: float = 0.0
    room: Array = field(default_factory=lambda: np.full(11, 10.0))

    @cached_property
    def terms(self) -> Terms:
        one = np.ones((1, 1))
        return Terms(one * self.opening > 0, one * LOW, one * HIGH, one * self.cost, self.room[None])

    def threads(self, received: Action = NO_OFFER) -> Threads:
        one = np.ones((1, 1))
        return Threads(one > 0, one * self.round, received, NO_OFFER, NOTHING_HEARD, 0 * one, self.known)

    @cached_property
    def worth(self) -> Array:
        return bargain.waiting(self.threads(), self.terms, self.options)

    @property
    def waiting(self) -> float:
        return float(self.worth[0, 0])

    @property
    def patient(self) -> bool:
        return bool(bargain.is_patient(self.threads())[0, 0])

    def sale(self) -> tuple[float, float, int]:
        lots = bargain.sale(self.threads(), self.terms, self.worth, self.options)
        assert 0 <= lots.reason[0, 0] < len(SALE_REASONS)
        return float(lots.quantity[0, 0]), float(lots.price[0, 0]), int(lots.choice[0, 0])

    def takes(self, quantity: float, price: float, ahead: float) -> bool:
        offer = Action(*(np.full((1, 1), float(part)) for part in (quantity, price, ahead)))
        return bool(bargain.takes(self.threads(offer), self.terms, self.worth, self.options)[0, 0])


def seat(round: int = 0, opening: bool = False, **known: int) -> Seat:
    return Seat(round, opening, record(**known))


@pytest.mark.parametrize(
    ("who", "lot"),
    [
        (seat(4, patient_highest=1), (10, HIGH, NEAREST)),
        (seat(4, patient_highest=1, patient_lowest=2), (10, HIGH, NEXT)),  # round 4: still the highest price
        (seat(12, patient_highest=1, patient_lowest=2), (10, LOW, NEXT)),
        (seat(3, patient_lowest=2), (10, LOW, NEXT)),
        (seat(5, patient_lowest=2), (2, LOW, TODAY)),
        (seat(5), (10, HIGH, NEXT)),
        (seat(13), (2, LOW, TODAY)),
        (seat(0, opening=True), (7, HIGH, FULLEST)),
        (seat(1, opening=True), (5, (HIGH + LOW) / 2, FULLEST)),
        (seat(2, opening=True), (3, LOW, FULLEST)),
        (seat(0), (3, LOW, FULLEST)),
        (seat(2), (1, LOW, FULLEST)),
    ],
)
def test_lots_suit_the_partner(who: Seat, lot: tuple[int, float, int]) -> None:
    assert who.sale() == lot


def test_who_only_asks_for_today_is_offered_today() -> None:
    asked = [(2, 0.0, 0), (1, 0.5, 0)]
    assert Seat(0, known=record(asked)).sale()[2] == TODAY
    assert Seat(0, known=record([*asked, (2, 0.0, 3)])).sale()[2] == FULLEST


def test_a_partner_known_to_bargain_is_patient_from_the_start() -> None:
    known, yes, zero = record(), np.ones((1, 1), bool), np.zeros((1, 1))
    for day in range(5):
        known = records.after_negotiations(known, yes, day, zero + 20, zero, zero, zero + 18, zero + 22)
    assert Seat(0, known=known).patient and not seat(2).patient and seat(3).patient
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
    assert who.takes(quantity, price, 1) == taken


def worth_waiting(offers: Sequence[float], taken: float, lot: float, rounds: int, leaving: float) -> float:
    """Once with all offers made today, once with all of them made before: the same."""
    chances = [np.full((1, 1), float(v)) for v in (taken, lot, rounds, leaving)]
    money, there, room = np.array([[offers]]), np.ones((1, 1, len(offers))), np.ones((1, 3))
    heard = Prospects(np.sort(-money), there, 0 * there, there.sum(-1))
    nobody = Prospects(np.full((1, 1, 1), np.inf), there[..., :1], there[..., :1], np.zeros((1, 1)))
    today = bargain.worth_waiting(nobody.fitting(room), bargain.Today(money, there), *chances)
    before = bargain.worth_waiting(heard.fitting(room), bargain.Today(money[..., :0], there[..., :0]), *chances)
    assert before == pytest.approx(today)
    return float(today[0, 0])


def test_waiting_is_worth_the_best_of_what_may_come() -> None:
    offers = (0.0, 100.0)
    assert worth_waiting(offers, taken=0, lot=0, rounds=0, leaving=0) == 0
    assert worth_waiting(offers, taken=0, lot=0, rounds=1, leaving=0) == 50
    assert worth_waiting(offers, taken=0, lot=0, rounds=2, leaving=0) == 75  # 100, or 50 for going on
    assert worth_waiting(offers, taken=0, lot=0, rounds=1, leaving=0.5) == 25
    assert worth_waiting([0.0], taken=0.1, lot=100, rounds=19, leaving=0) == pytest.approx(100 * (1 - 0.9**19))


def test_offers_are_weighed_against_what_the_partner_usually_offers() -> None:
    heard = [(q, 0.0, 1.0) for q in (2, 2, 2, 10)]
    stays, leaves = record(heard, offers=40), record(heard, offers=40, left=30)
    for known, round, taken in ((stays, 2, False), (stays, 19, True), (leaves, 2, True)):
        assert Seat(round, known=known, cost=5).takes(2, LOW, 1) == taken
    assert Seat(2, known=stays, cost=5).takes(10, LOW, 1)
    empty, full = Seat(2, known=stays, cost=5), Seat(2, known=stays, room=np.full(2, 2.0))
    assert full.waiting < 2 * HIGH < empty.waiting  # ten units for tomorrow no longer fit: waiting for them is vain


def test_too_few_offers_tell_nothing() -> None:
    assert np.isnan(Seat(2, known=record([(2, 0.0, 1.0)] * 3, offers=40)).waiting)


def test_no_lot_is_smaller_than_waiting_is_worth() -> None:
    early = Seat(2, known=record([(10, 0.0, 0)] * 8, offers=60, patient_lowest=2), cost=5)
    assert early.waiting > 8 * (LOW - 5)
    assert early.sale()[0] >= 9
    nothing = record([(30, 0.0, 0)] * 8, offers=60, patient_lowest=2)
    assert Seat(17, known=nothing, cost=5).sale()[0] == 2


def test_large_cheap_requests_for_today_wait_until_the_partner_pays_more() -> None:
    asks = [(10, 0.0, 0.0)] * 8
    stays = record(asks, offers=60, late_offers=50)

    def taken(round: int, price: float = LOW, ahead: int = 0, known: Records = stays, hold: int = 18) -> bool:
        return Seat(round, known=known, options=RuleOptions(hold=hold), cost=5).takes(10, price, ahead)

    assert not taken(2) and not taken(17) and taken(18) and taken(5, HIGH)
    assert taken(5, ahead=1) and taken(5, hold=0)
    assert taken(5, known=record(asks, offers=60, left=20, late_offers=50, late_left=5))


def test_sellers_that_differ_from_the_rule_in_one_respect() -> None:
    asks = [(10, 0.0, 0.0)] * 8
    stays = record(asks, offers=60, late_offers=50, patient_lowest=2)

    def at(round: int, **options: Any) -> Seat:
        return Seat(round, known=stays, options=RuleOptions(**options), cost=5)

    assert not at(5).takes(2, LOW, 1) and at(5, wait=False).takes(2, LOW, 1)
    assert not at(5).takes(10, LOW, 0) and at(5, wait=False).takes(10, LOW, 0)  # nothing is held back
    assert not at(5, wait=False).takes(2, 4, 1)  # below the cost
    lot, price, day = at(3).sale()
    assert price == LOW and lot > 1
    assert at(3, price="highest").sale()[1:] == (HIGH, day)
    assert at(3, price="lowest").sale() == (lot, LOW, day)
    assert at(3, lot=1).sale() == (1, LOW, day)
    assert Seat(0, opening=True, options=RuleOptions(price="lowest")).sale() == (7, LOW, FULLEST)
    assert Seat(0, opening=True, options=RuleOptions(lot=1)).sale() == (1, HIGH, FULLEST)


def test_options_that_differ_from_factory_to_factory_mean_the_same() -> None:
    known = record([(10, 0.0, 0.0), (3, 1.0, 2.0)] * 4, offers=60, late_offers=50, patient_lowest=2)
    options = [
        RuleOptions(),
        RuleOptions(wait=False),
        RuleOptions(price="highest"),
        RuleOptions(lot=1),
        RuleOptions(hold=0, loss=0.3, small_lot=5, small_price=0.5, opening_lots=(6, 4), opening_prices=(0.25,)),
    ]
    many = bargain.many_options(options, np.zeros(()))
    for row, own in enumerate(options):
        mine = many.take([row])
        for seat in (Seat(r, o, k, cost=5) for r in (0, 1, 5, 12) for o in (False, True) for k in (known, record())):
            offer = Action(*(np.full((1, 1), part) for part in (10.0, LOW, 0.0)))
            threads, terms = seat.threads(offer), seat.terms
            worth = bargain.waiting(threads, terms, own)
            np.testing.assert_array_equal(worth, bargain.waiting(threads, terms, mine))
            np.testing.assert_array_equal(
                bargain.takes(threads, terms, worth, own), bargain.takes(threads, terms, worth, mine)
            )
            for part, other in zip(bargain.sale(threads, terms, worth, own), bargain.sale(threads, terms, worth, mine)):
                np.testing.assert_array_equal(part, other)
    assert many.small_lot.shape == (5, 1) and many.opening_lots.shape == (5, 1, 3)
