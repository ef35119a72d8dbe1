"""How rule W sells to one partner: pure functions of what is known about it.

Demand limits sales, so a negotiation is worth what it can still bring. From the offers that a partner made so far, how
often it took mine and how often it left, `worth_waiting` computes the money that going on is worth; an offer that
brings at least as much is taken, and none is made that brings less.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from marlab.market.agent.settings import RuleOptions
from marlab.market.agent.threads import LAST_ROUND
from marlab.market.logs.daystate import Array
from marlab.market.rules import economic
from marlab.market.rules.partners import Heard, Record

DEFAULTS = RuleOptions()
LARGE_LOT = 10
LARGE_REQUEST = 8
"""A request of at least this many units fills a day."""
SMALL_REQUEST = 3
"""A stranger's request at the highest price is taken from this many units on."""
HOLD_FROM, CHEAP = 2, 0.6
"""The round from which large requests are held back, and the position of the price below which they are."""
SELDOM = 0.15
"""A partner with a smaller chance of leaving is known to bargain long."""
FEW_OFFERS = 4
"""With fewer offers heard of a partner, nothing is known about what it will offer next."""
GUESSED_OFFERS, GUESSED_TAKEN = 6.0, 0.3
"""Own offers to a stranger that are assumed made and taken."""

Day = Literal["today", "nearest", "next", "fullest"]
"""Days with room for a lot: this one, the first, the first after today, the one that it fills most (the latest of
equals). Small lots fill days up, so that others stay empty for large ones."""


@dataclass(frozen=True)
class Seat:
    """One selling thread with what the rule looks at."""

    round: int
    opening: bool  # one of the first days
    lowest: float  # bounds of the price issue
    highest: float
    record: Record
    options: RuleOptions = DEFAULTS
    cost: float = 0.0  # of making a unit
    offered: int = 0  # my offers of today
    heard: tuple[Heard, ...] = ()  # the partner's
    room: Array = field(default_factory=lambda: np.full(11, float(LARGE_LOT)))  # [H+1] units that can be sold, by day

    @property
    def patient(self) -> bool:
        """Still there in round 3, or known to bargain long."""
        known = self.record.is_patient or self.record.leaving < SELDOM
        return known or self.round >= economic.PATIENT_ROUND

    @property
    def pays_highest(self) -> bool:
        """Has agreed to the highest price, and at least as often as to the lowest."""
        return self.record.patient_highest >= max(1, self.record.patient_lowest)

    @property
    def pays_lowest_only(self) -> bool:
        """Has agreed to the lowest price at least twice and never to the highest."""
        return self.record.patient_lowest >= 2 and self.record.patient_highest == 0

    def price(self, position: float) -> float:
        """The price at a position between the lowest (0) and the highest (1)."""
        return self.lowest + position * (self.highest - self.lowest)

    @cached_property
    def waiting(self) -> float | None:
        """Money that the rest of the negotiation may bring; None while too little is known."""
        record = self.record
        heard = [*record.heard, *self.heard]
        if len(heard) < FEW_OFFERS:
            return None
        quantity, position, ahead = np.array(heard).T
        fits = (ahead < len(self.room)) & (quantity <= self.room[np.minimum(ahead, len(self.room) - 1).astype(int)])
        each = self.lowest + position * (self.highest - self.lowest) - self.cost
        offered = record.offers + self.offered
        lot = (record.taken_units + LARGE_LOT * GUESSED_TAKEN) / (record.taken + GUESSED_TAKEN)
        price = self.highest if record.patient_highest >= record.patient_lowest else self.lowest
        return worth_waiting(
            np.where(fits, quantity * each, 0.0),
            taken=(record.taken + GUESSED_TAKEN) / (offered + GUESSED_OFFERS),
            lot=min(lot, float(self.room.max())) * (price - self.cost),
            rounds=max(0, LAST_ROUND - self.round),
            leaving=max(self.options.loss, (record.left + 1) / (offered - record.taken + 2)),
        )


def worth_waiting(offers: Array, taken: float, lot: float, rounds: int, leaving: float) -> float:
    """Money that a negotiation brings if it goes on for `rounds` more rounds and every offer is weighed.

    `offers`: money [N] of offers that the partner may make, each equally likely in every round; `taken`: chance that it
    takes mine instead, which brings `lot`; `leaving`: chance that it goes when it does not.
    """
    worth = 0.0
    for _ in range(rounds):
        worth = taken * lot + (1 - taken) * (1 - leaving) * float(np.maximum(offers, worth).mean())
    return worth


@dataclass(frozen=True)
class Lot:
    """What to offer for sale, and why."""

    quantity: int
    price: float
    day: Day
    reason: str


def sale(seat: Seat) -> Lot:
    """The lot that suits a partner in this round; never a smaller one than waiting is worth."""
    lot = _patient_sale(seat) if seat.patient else _hasty_sale(seat)
    if seat.waiting is None:
        return lot
    least = int(np.ceil(seat.waiting / max(1.0, lot.price - seat.cost)))
    return lot if lot.quantity >= least else replace(lot, quantity=min(LARGE_LOT, least))


def _patient_sale(seat: Seat) -> Lot:
    """Large lots at the price the partner has shown to pay; to strangers at the highest, near the end at the lowest."""
    turn = seat.round % 3
    if seat.pays_highest:
        return Lot(LARGE_LOT, seat.highest, "nearest", "takes the highest price")
    if seat.pays_lowest_only:
        return Lot((10, 5, 2)[turn], seat.lowest, "today" if turn == 2 else "next", "takes only the lowest price")
    if seat.round < economic.YIELD_ROUND:
        return Lot(LARGE_LOT, seat.highest, "next", "keeps bargaining")
    return Lot((10, 2, 5)[turn], seat.lowest, "today" if turn == 1 else "next", "bargains to the end")


def _hasty_sale(seat: Seat) -> Lot:
    """What somebody who leaves after one or two offers takes at once: 5 to 7 units in the first days, later 3."""
    options = seat.options
    if seat.opening:
        lots, prices = options.opening_lots, options.opening_prices
        price = seat.price(prices[min(seat.round, len(prices) - 1)])
        return Lot(lots[min(seat.round, len(lots) - 1)], price, "fullest", "first days")
    quantity = max(1, options.small_lot - seat.round)
    day: Day = "today" if seat.record.only_today else "fullest"
    return Lot(quantity, seat.price(options.small_price), day, "leaves early")


def takes(seat: Seat, quantity: float, price: float, ahead: int) -> bool:
    """Whether to sell on a partner's terms, if there is room; `ahead`: days to delivery."""
    large_and_cheap = ahead == 0 and quantity >= LARGE_REQUEST and price < seat.price(CHEAP)
    if large_and_cheap and HOLD_FROM <= seat.round < seat.options.hold and seat.record.stays:
        return False
    if seat.waiting is not None:
        return quantity * (price - seat.cost) >= seat.waiting
    if price >= seat.highest and quantity >= SMALL_REQUEST:
        return True
    return not seat.patient and (not seat.opening or seat.round >= 1 or quantity >= 5)


def day_for(lot: Lot, room: Array) -> int:
    """The day to offer a lot for; `room` [H+1] holds at least one unit somewhere."""
    if lot.day == "today" and room[0] >= 1:
        return 0
    fitting = np.flatnonzero(room >= min(lot.quantity, room.max()))
    if lot.day == "nearest":
        return int(fitting[0])
    if lot.day == "next":
        return int(fitting[0 if len(fitting) == 1 or fitting[0] > 0 else 1])
    return int(fitting[room[fitting] == room[fitting].min()][-1])
