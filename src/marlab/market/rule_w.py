"""Rule W: a scripted executor that earns well in this simulator, and the floor that learning has to beat.

It rests on three facts. Stock is bought once, because it is never used up: buy the need of `economic.need` at once, at
any price. Sales are limited by demand: keep offering to whoever keeps answering, with lots that the partner has shown
to take, on days with room. And a day's sales beyond what can be made that day only cost: every offer and acceptance
of a round takes its room before the next one.

How long a partner bargains and what it takes at which price comes from `partners.Record`, filled on earlier days.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from marlab.market import economic
from marlab.market.agent_decide import Wish, by_weight
from marlab.market.agent_threads import LAST_ROUND, Offer, Situation
from marlab.market.daystate import Array
from marlab.market.l1 import Action, Caps
from marlab.market.logs import ACCEPT, END, REJECT
from marlab.market.partners import FIRST_ROUNDS, Heard, Kind, Record, kind_of
from marlab.market.rule_options import RuleOptions

DEFAULTS = RuleOptions()
USUAL_LOTS = (3, 2, 1)
"""First lot for an impatient partner after 0, 1, 2 or more failures in a row."""
LARGEST_USUAL_LOT = 7
LARGE_LOT = 10
SMALL_LOT = 3
"""Lots up to this are offered for today: somebody may just be short of them."""
LATE_ROUND, LAST_ROUNDS = 11, 17
"""From the first a large offer of a patient partner is accepted, from the second any."""
LEAST_PART = 2
"""Fewer units are not worth answering a larger request with."""
SELDOM = 0.15
"""A partner with a smaller chance of leaving is known to bargain long."""
FEW_OFFERS = 4
"""With fewer offers heard of a partner, nothing is known about what it will offer next."""
GUESSED_OFFERS, GUESSED_TAKEN = 6.0, 0.3
"""Own offers to a stranger that are assumed made and taken."""
ARMS = (
    (10, 1.0, "nearest"),
    (10, 0.5, "next"),
    (10, 0.0, "next"),
    (5, 0.5, "next"),
    (3, 0.0, "next"),
    (2, 0.0, "today"),
)
"""Lots, positions of the price and days that patient partners are offered."""
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
    options: RuleOptions = DEFAULTS
    cost: float = 0.0  # of making a unit
    usual: float = 0.0  # trading price
    pull: float = 0.0  # how much a price above it is worth beyond itself
    day: int = 0
    tried: Counter[Kind] = field(default_factory=Counter)  # today's offers by kind
    waiting: float | None = None  # money that waiting for the partner's next offers is worth, None: unknown

    @property
    def patient(self) -> bool:
        """Still there in round 3, or known to bargain long."""
        stays = self.options.waiting and self.record.leaving < SELDOM
        return self.round >= economic.PATIENT_ROUND or self.record.is_patient or stays

    def price(self, position: Any) -> Any:
        """The price at a position between the lowest (0) and the highest (1)."""
        return self.lowest + position * (self.highest - self.lowest)

    def worth(self, price: Any) -> Any:
        """Money that a unit brings: now, and by moving later prices."""
        return price - self.cost + self.pull * (price - self.usual)

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
    """What to offer for sale; `day` is the kind of day with room: today, next (later than today), nearest, latest,
    emptiest, or the fullest that still takes it."""

    quantity: int
    price: float
    day: str
    reason: str


def sale(seat: Seat) -> Lot:
    """The lot that suits a partner in this round; never a smaller one than waiting is worth."""
    lot = _usual_sale(seat)
    if seat.waiting is None:
        return lot
    least = int(np.ceil(seat.waiting / max(1.0, seat.worth(lot.price))))
    return lot if lot.quantity >= least else replace(lot, quantity=min(LARGE_LOT, least))


def _usual_sale(seat: Seat) -> Lot:
    lowest, highest, turn, options = (
        seat.lowest,
        seat.highest,
        seat.round % 3,
        seat.options,
    )
    soon, later = ("nearest", "next") if options.nearest else ("emptiest", "emptiest")
    if seat.patient and options.arms:
        return best_arm(seat)
    if seat.patient and seat.pays_highest:
        return Lot(LARGE_LOT, highest, soon, "takes the highest price")
    if seat.patient and seat.pays_lowest_only:
        return Lot(
            (10, 5, 2)[turn],
            lowest,
            "today" if turn == 2 else later,
            "takes only the lowest price",
        )
    if seat.patient and seat.round < economic.YIELD_ROUND:
        lots, prices = options.patient_lots, options.patient_prices
        price = seat.price(prices[seat.round % len(prices)])
        return Lot(lots[seat.round % len(lots)], price, later, "keeps bargaining")
    if seat.patient:
        return Lot(
            (10, 2, 5)[turn],
            lowest,
            "today" if turn == 1 else later,
            "bargains to the end",
        )
    if seat.opening:
        lots, prices = options.opening_lots, options.opening_prices
        price = seat.price(prices[min(seat.round, len(prices) - 1)])
        day = "fullest" if options.pack else "latest"
        quantity = lots[min(seat.round, len(lots) - 1)]
        if options.day_lots:
            quantity = max(2, options.day_lots[seat.day] - 2 * seat.round)
        return Lot(quantity, price, day, "first days")
    record = seat.record
    price = seat.price(options.usual_prices[min(seat.round, len(options.usual_prices) - 1)])
    if options.usual_later:
        day = "today" if record.only_today else "fullest" if options.pack else "latest"
        return Lot(max(1, SMALL_LOT - seat.round), price, day, "leaves early")
    first = USUAL_LOTS[min(record.failures_in_a_row, 2)]
    if record.last_lot and not record.failures_in_a_row:
        first = min(record.last_lot, LARGEST_USUAL_LOT)
    quantity = max(1, first - seat.round)
    day = "today" if quantity <= SMALL_LOT else "fullest" if options.pack else "emptiest"
    return Lot(quantity, price, day, "leaves early")


def best_arm(seat: Seat) -> Lot:
    """The lot that promises most over what waiting brings, by how often the partner took such offers."""

    def promise(arm: tuple[int, float, str]) -> float:
        quantity, position, day = arm
        kind = kind_of(quantity, position, 0 if day == "today" else 1)
        gain = quantity * seat.worth(seat.price(position)) - (seat.waiting or 0.0)
        return seat.record.chance(kind, seat.tried[kind]) * gain

    quantity, position, day = max(ARMS, key=promise)
    return Lot(quantity, seat.price(position), day, "promises most")


def takes(seat: Seat, quantity: float, price: float, ahead: int = 1) -> bool:
    """Whether to sell on a partner's terms, if there is room; `ahead`: days to delivery."""
    large_and_cheap = ahead == 0 and quantity >= 8 and price < seat.price(0.6)
    if large_and_cheap and 2 <= seat.round < seat.options.hold and seat.record.stays:
        return False
    if seat.waiting is not None:
        return quantity * seat.worth(price) >= seat.waiting
    if price >= seat.highest and quantity >= SMALL_LOT:
        return True
    if not seat.patient:
        return not seat.opening or seat.round >= 1 or quantity >= 5
    if seat.pays_highest:
        return seat.round >= LATE_ROUND and quantity >= 8
    return seat.round >= LAST_ROUNDS or (seat.round >= LATE_ROUND and quantity >= 7)


def worth_waiting(
    offers: Array,
    made: Array,
    now: int,
    taken: float,
    lot: float,
    leaving: tuple[float, float],
    window: int = 0,
) -> float:
    """Money that a negotiation brings if it goes on after round `now` and every offer is weighed.

    `offers`: money [N] of offers that the partner may make, `made` [N] the rounds in which it made such offers; `taken`:
    chance that it takes mine instead, which brings `lot`; `leaving`: chance that it goes when it does not, in the first
    rounds and later. Offers of about the same round are equally likely (with `window` 0, all are).
    """
    worth, best = 0.0, offers.max() if len(offers) else 0.0
    for round in range(LAST_ROUND, now, -1):
        near = offers
        if window:
            near = offers[np.abs(made - round) <= window]
            if len(near) < FEW_OFFERS:  # hope for the best where nothing is known
                near = np.append(offers, best)
        stays = 1 - leaving[round > FIRST_ROUNDS]
        worth = taken * lot + (1 - taken) * stays * float(np.maximum(near, worth).mean())
    return worth


class RuleW:
    """The decider: accepts first, largest first, then offers in the order of L4's weights."""

    def __init__(self, options: RuleOptions | None = None) -> None:
        self._options = options or RuleOptions()

    def __call__(self, at: Situation, alpha: Array) -> _Wishes:
        """Look at a round once."""
        return _Wishes(at, alpha, self._options)


class _Wishes:
    def __init__(self, at: Situation, alpha: Array, options: RuleOptions) -> None:
        self._at, self._options = at, options
        self._seats: dict[int, Seat] = {}
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
        at, chosen, room = self._at, [], self._room(self._at.caps)
        for i, (quantity, when, price) in self._received(selling=True):
            slot = int(when - at.state.day)
            if 0 <= slot < len(room) and quantity <= room[slot] and takes(self._seat(i), quantity, price, slot):
                chosen.append(i)
                self._reason[i] = "good enough"
                room[slot] -= quantity
        return chosen

    def _room(self, left: Caps) -> Array:
        """[H+1] units that may be sold by day: what L1 leaves, less what a middle factory holds back to fill up."""
        state, room = self._at.state, left.sell.copy()
        filling = state.can_buy and state.inventory_input < state.n_lines
        if self._options.fill_first and filling and state.n_steps - state.day > economic.REFILL_DAYS:
            room[:2] = 0
        return room

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
        hurry = self._at.threads[i].round >= self._options.raise_round
        price = self._at.issue.price_max[i] if hurry else self._at.issue.price_min[i]
        return _action(quantity, float(price), 0)

    def _sell(self, i: int, left: Caps) -> Action | None:
        issue = self._at.issue
        room = np.floor(self._room(left))
        slots = np.arange(len(room))
        room = np.where((slots >= issue.first[i]) & (slots <= issue.last[i]), room, 0)
        if room.max() < 1:
            self._reason.setdefault(i, "no room")
            return None
        seat, asked = self._seat(i), self._at.threads[i].received
        if self._options.meet and asked is not None and not seat.patient:
            slot = int(asked[1] - self._at.state.day)
            if 0 <= slot < len(room) and LEAST_PART <= room[slot] < asked[0]:
                self._reason.setdefault(i, "part of what it asks for")
                return _action(room[slot], float(asked[2]), slot)
        lot = sale(seat)
        self._reason.setdefault(i, lot.reason)
        return _action(lot.quantity, lot.price, self._day(i, lot, room))

    def _day(self, i: int, lot: Lot, room: Array) -> int:
        if lot.day == "today" and room[0] >= 1:
            return 0
        fitting = np.flatnonzero(room >= min(lot.quantity, room.max()))
        if lot.day in ("latest", "nearest"):
            return int(fitting[-1 if lot.day == "latest" else 0])
        if lot.day == "next":
            return int(fitting[0 if len(fitting) == 1 or fitting[0] > 0 else 1])
        if lot.day == "fullest":
            return int(fitting[room[fitting] == room[fitting].min()][-1])
        thread = self._at.threads[i]
        # the draw belongs to the thread and its round, so the order of calls does not matter
        source = random.Random(f"{self._at.state.day} {thread.partner} {thread.round}")
        return int(source.choice(np.flatnonzero(room == room.max()).tolist()))

    def _seat(self, i: int) -> Seat:
        if i not in self._seats:
            at, options = self._at, self._options
            left = float((at.state.n_steps - at.state.day) / at.state.n_steps)
            seat = Seat(
                at.threads[i].round,
                float(at.state.day) < (len(options.day_lots) or options.opening_days),
                float(at.issue.price_min[i]),
                float(at.issue.price_max[i]),
                at.record(i),
                options,
                float(at.state.production_cost),
                float(at.state.price_out),
                options.price_weight * left,
                int(at.state.day),
                Counter(kind_of(*offer[:3]) for offer in self._mine(i)),
            )
            self._seats[i] = replace(seat, waiting=self._waiting(i, seat)) if options.waiting else seat
        return self._seats[i]

    def _mine(self, i: int) -> list[Heard]:
        """My offers in thread `i`."""
        issue = self._at.issue
        return self._at.threads[i].offers(True, float(issue.price_min[i]), float(issue.price_max[i]))

    def _waiting(self, i: int, seat: Seat) -> float | None:
        """Money that the rest of thread `i` may bring, by what its partner has offered and taken so far."""
        at, thread, record = self._at, self._at.threads[i], self._at.record(i)
        lowest, highest = float(at.issue.price_min[i]), float(at.issue.price_max[i])
        heard = [*record.heard, *thread.offers(False, lowest, highest)]
        if len(heard) < FEW_OFFERS:
            return None
        quantity, position, ahead, made = np.array(heard).T
        room = self._room(at.caps)
        fits = (ahead < len(room)) & (quantity <= room[np.minimum(ahead, len(room) - 1).astype(int)])
        each = seat.worth(seat.price(position))
        today = sum(mine for *_, mine in thread.history)
        offered = record.offers + today
        chance = (record.taken + GUESSED_TAKEN) / (offered + GUESSED_OFFERS)
        lot = (record.taken_units + LARGE_LOT * GUESSED_TAKEN) / (record.taken + GUESSED_TAKEN)
        lot_price = highest if record.patient_highest >= record.patient_lowest else lowest
        mine = min(lot, float(room.max())) * seat.worth(lot_price)
        late = record.late_offers + max(0, today - FIRST_ROUNDS)
        options = self._options
        leaving = (record.left + 1) / (offered - record.taken + 2)
        later = (record.late_left + 0.1) / (late + 3) if options.window else leaving
        money = np.where(fits, quantity * each, 0.0)
        chances = max(options.loss, leaving), max(options.loss, later)
        return worth_waiting(money, made, thread.round, chance, mine, chances, options.window)


def _action(quantity: float, price: float, day: int) -> Action:
    return Action(np.asarray(float(quantity)), np.asarray(price), np.asarray(float(day)))
