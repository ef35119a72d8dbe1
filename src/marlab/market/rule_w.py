"""Rule W: a scripted executor that earns well in this simulator, and the floor that learning has to beat.

It rests on three facts. Stock is bought once, because it is never used up: buy the need of `economic.need` at once, at
any price. Sales are limited by demand: keep offering to whoever keeps answering, with lots that the partner has shown
to take, on days with room. And a day's sales beyond what can be made that day only cost: every offer and acceptance
of a round takes its room before the next one.

How long a partner bargains and what it takes at which price comes from `partners.Record`, filled on earlier days.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from marlab.market import economic
from marlab.market.agent_decide import Wish, by_weight
from marlab.market.agent_threads import Offer, Situation
from marlab.market.daystate import Array
from marlab.market.l1 import Action, Caps
from marlab.market.logs import ACCEPT, END, REJECT
from marlab.market.partners import Record

OPENING_DAYS = 3
"""On these days everybody still fills his stock, and lots can be larger."""
OPENING_LOTS = (7, 4, 2)
USUAL_LOTS = (3, 2, 1)
"""First lot for an impatient partner after 0, 1, 2 or more failures in a row."""
LARGEST_USUAL_LOT = 7
SMALL_LOT = 3
"""Lots up to this are offered for today: somebody may just be short of them."""
LATE_ROUND, LAST_ROUNDS = 11, 17
"""From the first a large offer of a patient partner is accepted, from the second any."""
SPARE_NEED = 4
"""With a need of at least this, an offer of one unit too many is accepted."""


@dataclass(frozen=True)
class Seat:
    """One selling thread with what the rule looks at."""

    round: int
    opening: bool  # one of the first days
    lowest: float  # bounds of the price issue
    highest: float
    record: Record

    @property
    def patient(self) -> bool:
        """Still there in round 3, or known to bargain long."""
        return self.round >= economic.PATIENT_ROUND or self.record.is_patient

    @property
    def pays_highest(self) -> bool:
        """Has agreed to the highest price, and at least as often as to the lowest."""
        return self.record.patient_highest >= max(1, self.record.patient_lowest)

    @property
    def pays_lowest_only(self) -> bool:
        """Has agreed to the lowest price at least twice and never to the highest."""
        return self.record.patient_lowest >= 2 and self.record.patient_highest == 0


@dataclass(frozen=True)
class Lot:
    """What to offer for sale; `day` is the kind of day: today, the emptiest or the latest one with room."""

    quantity: int
    price: float
    day: str
    reason: str


def sale(seat: Seat) -> Lot:
    """The lot that suits a partner in this round."""
    lowest, highest, turn = seat.lowest, seat.highest, seat.round % 3
    if seat.patient and seat.pays_highest:
        return Lot(10, highest, "emptiest", "takes the highest price")
    if seat.patient and seat.pays_lowest_only:
        return Lot((10, 5, 2)[turn], lowest, "today" if turn == 2 else "emptiest", "takes only the lowest price")
    if seat.patient and seat.round < economic.YIELD_ROUND:
        return Lot((10, 10, 5)[turn], highest, "emptiest", "keeps bargaining")
    if seat.patient:
        return Lot((10, 2, 5)[turn], lowest, "today" if turn == 1 else "emptiest", "bargains to the end")
    middle = (lowest + highest) / 2
    step = min(seat.round, 2)
    if seat.opening:
        return Lot(OPENING_LOTS[step], (highest, highest, middle)[step], "latest", "first days")
    record = seat.record
    first = USUAL_LOTS[min(record.failures_in_a_row, 2)]
    if record.last_lot and not record.failures_in_a_row:
        first = min(record.last_lot, LARGEST_USUAL_LOT)
    quantity = max(1, first - seat.round)
    day = "today" if quantity <= SMALL_LOT else "emptiest"
    return Lot(quantity, (highest, middle, lowest)[step], day, "leaves early")


def takes(seat: Seat, quantity: float, price: float) -> bool:
    """Whether to sell on a partner's terms, if there is room."""
    if price >= seat.highest and quantity >= SMALL_LOT:
        return True
    if not seat.patient:
        return not seat.opening or seat.round >= 1 or quantity >= 5
    if seat.pays_highest:
        return seat.round >= LATE_ROUND and quantity >= 8
    return seat.round >= LAST_ROUNDS or (seat.round >= LATE_ROUND and quantity >= 7)


class RuleW:
    """The decider: accepts first, largest first, then offers in the order of L4's weights."""

    def __call__(self, at: Situation, alpha: Array) -> _Wishes:
        """Look at a round once."""
        return _Wishes(at, alpha)


class _Wishes:
    def __init__(self, at: Situation, alpha: Array) -> None:
        self._at = at
        by_alpha = by_weight(at, alpha)
        self._reason: dict[int, str] = {}
        self._accepted = self._purchases() + self._sales()
        self.order = self._accepted + [i for i in by_alpha if i not in self._accepted]
        self._shares = self._split([i for i in self.order if not at.selling[i] and i not in self._accepted])

    # --- what to accept, before anything is offered -------------------------------------------------------------

    def _received(self, selling: bool) -> list[tuple[int, Offer]]:
        """Threads of a side with the partner's offer, largest first."""
        found = [(i, t.received) for i, t in enumerate(self._at.threads) if t.received and t.selling == selling]
        return sorted(found, key=lambda pair: (-pair[1][0], self._at.threads[pair[0]].partner))

    def _purchases(self) -> list[int]:
        """Offers for today that fit the need, at any price."""
        at, chosen = self._at, []
        self._need = float(economic.need(at.state))
        spare = 1 if self._need >= SPARE_NEED else 0
        room, budget = float(at.caps.buy[0]), float(at.caps.budget)
        for i, (quantity, when, price) in self._received(selling=False):
            fits = quantity <= min(self._need + spare, room) and quantity * price <= budget
            if when == at.state.day and self._need >= 1 and fits:
                chosen.append(i)
                self._reason[i] = "fits the need"
                self._need -= quantity
                room, budget = room - quantity, budget - quantity * price
        return chosen

    def _sales(self) -> list[int]:
        """Offers worth taking that fit the room of their day."""
        at, chosen, room = self._at, [], self._at.caps.sell.copy()
        for i, (quantity, when, price) in self._received(selling=True):
            slot = int(when - at.state.day)
            if 0 <= slot < len(room) and quantity <= room[slot] and takes(self._seat(i), quantity, price):
                chosen.append(i)
                self._reason[i] = "good enough"
                room[slot] -= quantity
        return chosen

    # --- what to offer ------------------------------------------------------------------------------------------

    def _split(self, others: list[int]) -> dict[int, float]:
        """The rest of the need over the other suppliers; a small one over up to twice as many as there are units."""
        need = int(max(0, self._need))
        if need >= len(others) > 0:
            return {i: need // len(others) + (place < need % len(others)) for place, i in enumerate(others)}
        return dict.fromkeys(others[: 2 * need], 1.0)

    def wish(self, i: int, left: Caps) -> Wish:
        """What to do in thread `i`."""
        op = ACCEPT if i in self._accepted else REJECT
        action = self._sell(i, left) if self._at.selling[i] else self._buy(i)
        return Wish(END if op == REJECT and action is None else op, action)

    def explain(self, i: int) -> dict[str, Any]:
        """Which part of the rule spoke."""
        return {"rule": self._reason.get(i, "nothing needed")}

    def _buy(self, i: int) -> Action | None:
        quantity = self._shares.get(i, 0.0)
        if quantity < 1:
            return None
        self._reason.setdefault(i, "share of the need")
        hurry = self._at.threads[i].round >= economic.RAISE_ROUND
        price = self._at.issue.price_max[i] if hurry else self._at.issue.price_min[i]
        return _action(quantity, float(price), 0)

    def _sell(self, i: int, left: Caps) -> Action | None:
        issue = self._at.issue
        room = np.floor(left.sell)
        slots = np.arange(len(room))
        room = np.where((slots >= issue.first[i]) & (slots <= issue.last[i]), room, 0)
        if room.max() < 1:
            self._reason.setdefault(i, "no room")
            return None
        lot = sale(self._seat(i))
        self._reason.setdefault(i, lot.reason)
        return _action(lot.quantity, lot.price, self._day(i, lot, room))

    def _day(self, i: int, lot: Lot, room: Array) -> int:
        if lot.day == "today" and room[0] >= 1:
            return 0
        if lot.day == "latest":
            return int(np.flatnonzero(room >= min(lot.quantity, room.max()))[-1])
        thread = self._at.threads[i]
        # the draw belongs to the thread and its round, so the order of calls does not matter
        source = random.Random(f"{self._at.state.day} {thread.partner} {thread.round}")
        return int(source.choice(np.flatnonzero(room == room.max()).tolist()))

    def _seat(self, i: int) -> Seat:
        at = self._at
        return Seat(
            at.threads[i].round,
            float(at.state.day) < OPENING_DAYS,
            float(at.issue.price_min[i]),
            float(at.issue.price_max[i]),
            at.record(i),
        )


def _action(quantity: float, price: float, day: int) -> Action:
    return Action(np.asarray(float(quantity)), np.asarray(price), np.asarray(float(day)))
