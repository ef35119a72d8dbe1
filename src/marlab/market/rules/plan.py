"""One plan per round over all negotiations of a side: wishes in order, each clipped by L1, each reserved.

Whatever the wishes are, a plan keeps three promises: every offer lies inside its negotiation's issues; if every offer
and every acceptance of the plan is signed, no cap and no budget of L1 is exceeded; and the plan depends on the set of
threads, not on the order in which anybody asked. The two sides of a factory do not touch each other within a round
(`l1.SideLeft`), so they are planned one by one, and what a side is, is known without looking into the arrays.

Letters: N factories, each at one joint decision; K threads (running negotiations) of the side, in order of the
partners' names; S = H + 1 days of a plan; T offers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array, DayState
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import l1
from marlab.market.rules.arrays import namespace
from marlab.market.rules.l1 import Action, Bools, Issue, L1Options
from marlab.market.rules.prospects import Outlook
from marlab.market.rules.records import Records

Ints = NDArray[np.int64]

AS_TOLD, TODAY, NEAREST, NEXT, FULLEST = range(5)
"""How the day of an own offer is chosen, given what other offers of the round have left: the wished one (a sale goes to
the best day that still holds the whole lot); or of the days with room for the lot this one, the first, the first after
today, the one that it fills most (the latest of equals)."""

REASONS = {
    "still to be answered": 1, "acceptance does not fit; ": 2, "ended by choice": 4, "nothing wanted": 8,
    "no day is open": 16, "day is full; ": 32, "no budget": 64, "no legal offer": 128, "quantity cut; ": 256,
    "price moved into the issue; ": 512, "unsafe": 1024, "no room": 2048,
}  # fmt: skip
"""What L1 changed: bits of `Answers.why`."""
SILENT = REASONS["no room"]
"""Bits that are not part of the text: the rule says so itself."""


class Threads(NamedTuple):
    """The negotiations of one side."""

    there: Bools  # [N, K] False: there is none at this place
    round: Array  # [N, K]
    received: Action  # each [N, K]: the partner's offer on the table, days counted from today; nan without one
    proposed: Action  # each [N, K]: my offer that the partner has not answered yet; nan without one
    heard: Action  # each [N, K, T]: the partner's offers of today; nan where there is none
    offered: Array  # [N, K] how many offers I made today
    records: Records  # [N, K] what earlier days told
    prospects: Outlook | None = None  # the same as `prospects.prospects` makes of it, where it is at hand
    earliest: int = 0  # no thread is in an earlier round


class Wishes(NamedTuple):
    """What to do in the threads of one side, before L1 has its say."""

    order: Ints  # [N, K] threads in the order in which they may use what is left
    op: Ints  # [N, K] logs.ACCEPT, REJECT (with an offer) or END
    quantity: Array  # [N, K] what to offer, also if an acceptance does not fit; 0: nothing
    price: Array  # [N, K]
    day: Array  # [N, K] for AS_TOLD
    choice: Ints  # [N, K] how the day is chosen
    rule: Bools  # [N, K] whether rule W decides: it ends where it has no room to sell
    reason: Ints  # [N, K] which part of rule W spoke, for the decision log
    held: Bools  # [N, S] days for which rule W sells nothing
    score: Array | None = None  # [N, K, S] how good each day is, for AS_TOLD; None: only the wished one


Revise = Callable[[Ints, Array, Array], Array]
"""Threads [N] whose turn it is, their rows [N, 14] of the table of `plan`, caps [N, S]; returns the rows to serve."""


class Answers(NamedTuple):
    """What to do in the threads of one side: each [N, K]."""

    op: Ints  # logs.ACCEPT (what was received), REJECT (with the offer below) or END
    quantity: Array  # 0 with END
    price: Array
    day: Array  # days from today
    why: Ints  # bits of REASONS

    @property
    def unsafe(self) -> Bools:
        """Answers that a last check found outside of L1 and turned into an end; none unless L1 is broken."""
        return self.why & REASONS["unsafe"] > 0


def plan(
    state: DayState, options: L1Options, selling: bool, threads: Threads, issue: Issue, wishes: Wishes,
    explain: bool = True, revise: Revise | None = None,
) -> Answers:  # fmt: skip
    """Answers for all threads of a side; `issue`: its bounds, each [N]; `explain`: also say what L1 changed.

    Threads whose partner still has an offer of mine to answer come first and repeat it: it may yet be signed.
    `revise` may change each wish when its turn comes, knowing what the threads before it have left.
    """
    xp = namespace(state.day)
    waiting, order = _waiting(threads), ordered(wishes, threads)
    table = xp.stack(
        [
            threads.there, waiting, *threads.received, *threads.proposed, wishes.op, wishes.quantity, wishes.price,
            wishes.day, wishes.choice, wishes.rule,
        ]
    )  # fmt: skip
    table = xp.gather_rows(table, order)  # [N, K, 14]
    score = None if wishes.score is None else xp.gather_rows(wishes.score, order)
    left = l1.SideLeft(state, options, selling)
    units, money = xp.zeros_like(state.q_in), xp.zeros_like(state.day)  # planned so far: [N, S] and [N]
    step = _Step(state, selling, issue, wishes.held, l1.open_days(left.cap(units), issue), explain)
    answers = []
    for k in range(xp.most(threads.there)):
        cap, row = left.cap(units), table[:, k]
        if revise is not None:
            row = revise(order[:, k], row, cap)
        answer = step(row, None if score is None else score[:, k], cap, left.budget(money))
        _, quantity, price, day, _ = answer
        slot = xp.minimum(day, state.horizon)
        units = units + xp.where(step.slots == slot[..., None], quantity[..., None], 0.0)
        money = money + quantity * price
        answers.append(xp.stack(answer))
    return _in_place(answers, order, state.day)


def by_weight(alpha: Array) -> Ints:
    """[..., K] threads by decreasing weight, equal ones by their places.

    Sums are rounded differently by other libraries and in other orders: what differs by less than 1e-9 is equal.
    """
    xp = namespace(alpha)
    return xp.argsort(-xp.rint(alpha * 1e9))


def _waiting(threads: Threads) -> Bools:
    """[N, K] threads whose partner still has an offer of mine to answer."""
    xp = namespace(threads.round)
    return threads.there & xp.isnan(threads.received.quantity) & ~xp.isnan(threads.proposed.quantity)


def ordered(wishes: Wishes, threads: Threads) -> Ints:
    """[N, K] the wished order with threads that wait first, by their partners' names, and empty places last."""
    xp, count = namespace(wishes.order), wishes.order.shape[-1]
    place = xp.argsort(wishes.order)  # of each thread
    index = xp.argsort(place * 0)
    return xp.argsort(xp.where(_waiting(threads), index, place + count * (2 - 1 * threads.there)))


def _in_place(answers: list[Array], order: Ints, like: Array) -> Answers:
    """Answers in the order of the threads; places without a thread end."""
    xp = namespace(order)
    nothing = xp.stack([xp.zeros_like(like) + END, *(xp.zeros_like(like),) * 4])
    answers = answers + [nothing] * (order.shape[-1] - len(answers))
    if not answers:
        none = xp.zeros_like(order)
        return Answers(none, none * 1.0, none * 1.0, none * 1.0, none)
    table = xp.gather_rows(xp.rows(answers), xp.argsort(order))  # [N, K, 5]
    op, quantity, price, day, why = (table[..., part] for part in range(5))
    return Answers(xp.ints(op), quantity, price, day, xp.ints(why))


class _Step:
    """The answer in one thread of every factory, given what is left: each [N]."""

    def __init__(
        self, state: DayState, selling: bool, issue: Issue, held: Bools, first_open: Bools, explain: bool
    ) -> None:
        xp = namespace(state.day)
        self.slots = xp.arange(state.horizon + 1, state.day)
        self._selling, self._issue, self._explain = selling, issue, explain
        self._on_offer = (self.slots >= issue.first[..., None]) & (self.slots <= issue.last[..., None])
        self._first_open = first_open  # [N, S] days that were open before anything was planned
        self._for_rule = self._on_offer & ~held

    def __call__(
        self, thread: Array, score: Array | None, cap: Array, budget: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Operator, quantity, price, day and bits from a row of the table of `plan`."""
        xp, selling, issue = namespace(cap), self._selling, self._issue
        numbers = [thread[:, part] for part in range(14)]
        there, waiting, rule = numbers[0] > 0, numbers[1] > 0, numbers[13] > 0
        received, proposed = Action(*numbers[2:5]), Action(*numbers[5:8])
        op, quantity, price, day, choice = numbers[8:13]
        accepts = (op == ACCEPT) & ~xp.isnan(received.quantity)
        accepted = accepts & is_safe(received, cap, budget, selling, issue)
        room, day = (None, day) if not selling else self._day_of_sale(quantity, day, choice, score, cap)
        no_room = xp.zeros_like(there) if room is None else rule & (room < 1)
        chose_end = (op == END) | ((op != ACCEPT) & no_room)
        nothing = no_room | (quantity < l1.SMALLEST_TRADE - l1.ROUNDING)

        is_open = (cap >= l1.SMALLEST_TRADE) & self._on_offer
        closed = ~xp.any(is_open)
        full = ~xp.take(is_open, xp.clip(xp.rint(day), 0, cap.shape[-1] - 1))
        day = xp.where(full, xp.floats(xp.argmax(xp.where(is_open, cap, -1.0)), cap), day)
        clipped = l1.clip_action(Action(quantity, price, day), cap, budget, selling, issue)
        refused = closed | ~clipped.valid | ~xp.take(is_open, clipped.day)
        makes = ~(chose_end | nothing | refused)
        own = Action(clipped.quantity, clipped.price, clipped.day)
        unsafe = makes & ~accepted & ~is_safe(own, cap, budget, selling, issue)
        acts = there & ~waiting
        offers = acts & ~accepted & makes & ~unsafe
        accepted = acts & accepted
        why = xp.zeros_like(quantity) if not self._explain else self._why(
            quantity, price, clipped.quantity, clipped.price, waiting=waiting, accepts=accepts, accepted=accepted,
            chose_end=chose_end, nothing=nothing, closed=closed, full=full, refused=refused, unsafe=unsafe,
            no_room=no_room,
        )  # fmt: skip
        waits = there & waiting
        parts = (
            xp.where(waits, mine, xp.where(accepted, theirs, xp.where(offers, new, 0.0)))
            for mine, theirs, new in zip(proposed, received, own)
        )
        answer = xp.where(accepted, float(ACCEPT), xp.where(offers | waits, float(REJECT), float(END)))
        return (answer, *parts, why * there)

    def _day_of_sale(
        self, quantity: Array, day: Array, choice: Array, score: Array | None, cap: Array
    ) -> tuple[Array, Array]:
        """The largest room of the days that a rule may sell for, and the day to sell for."""
        xp, slots = namespace(cap), self.slots
        # as told: the best day that holds the whole lot, if there is one
        held = xp.where(self._first_open, xp.floor(cap + l1.ROUNDING), 0.0)
        fits = held >= xp.maximum(1, xp.rint(quantity))[..., None]
        good = xp.where(slots == day[..., None], 1.0, 0.0) if score is None else score
        best = xp.floats(xp.argmax(xp.where(fits, good, -math.inf)), cap)
        told = xp.where(xp.any(fits), best, day)
        room = xp.where(self._for_rule, xp.floor(cap), 0.0)
        return xp.max(room), xp.where(choice == AS_TOLD, told, chosen_day(quantity, choice, room))

    def _why(self, quantity: Array, price: Array, cut: Array, moved: Array, **is_so: Bools) -> Array:
        """Bits of REASONS."""
        xp = namespace(quantity)
        tries = ~(is_so["waiting"] | is_so["accepted"] | is_so["chose_end"])
        makes = tries & ~is_so["nothing"]
        goes = makes & ~is_so["closed"]
        done = goes & ~is_so["refused"]
        poor = cut < 1 if not self._selling else xp.zeros_like(done)
        bits = {
            "still to be answered": is_so["waiting"],
            "acceptance does not fit; ": tries & is_so["accepts"],
            "ended by choice": is_so["chose_end"] & ~is_so["waiting"] & ~is_so["accepted"],
            "nothing wanted": tries & is_so["nothing"],
            "no day is open": makes & is_so["closed"],
            "day is full; ": goes & is_so["full"],
            "no budget": goes & is_so["refused"] & poor,
            "no legal offer": goes & is_so["refused"] & ~poor,
            "quantity cut; ": done & (cut < xp.floor(quantity + l1.ROUNDING)),
            "price moved into the issue; ": done & (xp.abs(moved - price) >= 1),
            "unsafe": done & is_so["unsafe"],
            "no room": ~is_so["waiting"] & is_so["no_room"],
        }
        return sum(REASONS[name] * xp.where(bit, 1.0, 0.0) for name, bit in bits.items())


class SaleDays(NamedTuple):
    """Days [N] with room for a lot: the first, the first after today, and the one that it fills most."""

    nearest: Array
    following: Array
    fullest: Array


def sale_days(quantity: Array, room: Array) -> SaleDays:
    """Days for a lot [N], or for as much of it as the best day holds, among days with `room` [N, S]."""
    xp = namespace(room)
    slots = xp.arange(room.shape[-1], room)
    fitting = room >= xp.minimum(quantity, xp.max(room))[..., None]
    nearest = xp.argmax(fitting)
    later = fitting & (slots > 0)
    following = xp.where(xp.any(later), xp.argmax(later), nearest)
    least = xp.min(xp.where(fitting, room, math.inf))
    fullest = room.shape[-1] - 1 - xp.argmax(xp.flip(fitting & (room == least[..., None])))
    return SaleDays(nearest, following, fullest)


def chosen_day(quantity: Array, choice: Array, room: Array) -> Array:
    """The day [N] for a lot, chosen as TODAY, NEAREST, NEXT or FULLEST say, among days with `room` [N, S]."""
    xp = namespace(room)
    nearest, following, fullest = sale_days(quantity, room)
    day = xp.where(choice == NEAREST, nearest, xp.where(choice == NEXT, following, fullest))
    return xp.floats(xp.where((choice == TODAY) & (room[..., 0] >= 1), 0, day), room)


def is_safe(offer: Action, cap: Array, budget: Array, selling: bool, issue: Issue) -> Bools:
    """Whether an offer is an outcome of its negotiation and fits what is left."""
    inside = (offer.quantity >= issue.quantity_min) & (offer.quantity <= issue.quantity_max)
    inside = inside & (offer.price >= issue.price_min) & (offer.price <= issue.price_max)
    return inside & l1.can_accept(offer, cap, budget, selling, issue)


def reason_text(why: int) -> str:
    """What L1 changed, in words."""
    return "".join(text for text, bit in REASONS.items() if why & bit and bit != SILENT)
