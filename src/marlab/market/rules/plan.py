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
    told = selling and (revise is not None or not xp.surely(wishes.choice != AS_TOLD))
    first_open = l1.open_days(left.cap(units), issue) if told else None
    step = _Step(state, selling, issue, wishes.held, first_open, table, explain, fixed=revise is None)
    answers = []
    for k in range(xp.most(threads.there)):
        cap, row = left.cap(units), table[:, k]
        if revise is not None:
            row = revise(order[:, k], row, cap)
        answer = step(k, row, None if score is None else score[:, k], cap, None if selling else left.budget(money))
        quantity, slot = answer[:, 1, None], xp.minimum(answer[:, 3, None], state.horizon)
        units = units + xp.where(step.slots == slot, quantity, 0.0)
        if not selling:
            money = money + answer[:, 1] * answer[:, 2]
        answers.append(answer)
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
    if not order.shape[-1]:
        none = xp.zeros_like(order)
        return Answers(none, none * 1.0, none * 1.0, none * 1.0, none)
    if len(answers) < order.shape[-1]:
        nothing = xp.stack([xp.zeros_like(like) + END, *(xp.zeros_like(like),) * 4])
        answers = answers + [nothing] * (order.shape[-1] - len(answers))
    table = xp.gather_rows(xp.rows(answers), xp.argsort(order))  # [N, K, 5]
    op, quantity, price, day, why = (table[..., part] for part in range(5))
    return Answers(xp.ints(op), quantity, price, day, xp.ints(why))


class _Step:
    """The answer in one thread of every factory, given what is left: each [N].

    What does not depend on what is left is found out before, for all threads at once: [N, K].
    """

    def __init__(
        self, state: DayState, selling: bool, issue: Issue, held: Bools, first_open: Bools | None, table: Array,
        explain: bool, fixed: bool,
    ) -> None:  # fmt: skip
        """`first_open` [N, S]: days that were open before anything was planned; None: nobody asks for AS_TOLD.

        `fixed`: the own offers' prices are those of the table.
        """
        xp = namespace(state.day)
        self.slots = xp.arange(state.horizon + 1, state.day)
        self._selling, self._issue, self._explain = selling, issue, explain
        self._on_offer = (self.slots >= issue.first[..., None]) & (self.slots <= issue.last[..., None])
        self._first_open = first_open
        self._for_rule = self._on_offer & ~held
        self._flags = table[..., :2] > 0  # there, waiting
        self._no_waits = xp.surely(~self._flags[..., 1])
        self._rule = table[..., 13] > 0
        quantity, price, day = (table[..., part] for part in (2, 3, 4))
        bounds = Issue(*(bound[..., None] for bound in issue))
        inside = (quantity >= bounds.quantity_min) & (quantity <= bounds.quantity_max)
        inside = inside & (price >= bounds.price_min) & (price <= bounds.price_max)
        reach = (day >= 0) & (day < len(self.slots)) & (day >= bounds.first) & (day <= bounds.last)
        self._legal = inside & reach  # also False without an offer
        self._slot = xp.ints(xp.clip(xp.zero_nan(day), 0, state.horizon))
        self._money = quantity * price
        self._price = l1.whole_price(table[..., 10], selling, bounds) if fixed else None
        self._least = xp.maximum(issue.quantity_min, l1.SMALLEST_TRADE)

    def __call__(self, k: int, thread: Array, score: Array | None, cap: Array, budget: Array | None) -> Array:
        """[N, 5]: operator, quantity, price, day and bits for thread `k`, a row [N, 14] of the table of `plan`."""
        xp, selling, issue = namespace(cap), self._selling, self._issue
        op, quantity, price, day, choice = (thread[:, part] for part in range(8, 13))
        there, waiting = self._flags[:, k, 0], self._flags[:, k, 1]
        accepts = op == ACCEPT
        accepted = accepts & self._legal[:, k] & (thread[:, 2] <= xp.take(cap, self._slot[:, k]))
        if budget is not None:
            accepted = accepted & (self._money[:, k] <= budget)
        no_room, chose_end = None, op == END
        nothing = quantity < l1.SMALLEST_TRADE - l1.ROUNDING
        if selling:
            room, day = self._day_of_sale(quantity, day, choice, score, cap)
            no_room = self._rule[:, k] & (room < 1)
            chose_end, nothing = chose_end | (~accepts & no_room), nothing | no_room

        is_open = (cap >= l1.SMALLEST_TRADE) & self._on_offer
        closed = ~xp.any(is_open)
        day = xp.clip(xp.rint(day), 0, cap.shape[-1] - 1)
        full = ~xp.take(is_open, day)
        day = xp.where(full, xp.floats(xp.argmax(xp.where(is_open, cap, -1.0)), cap), day)
        whole = self._price[:, k] if self._price is not None else l1.whole_price(price, selling, issue)
        bound = xp.minimum(xp.take(cap, day), issue.quantity_max)
        if budget is not None:
            bound = xp.minimum(bound, budget / xp.maximum(whole, l1.ROUNDING))
        cut = xp.maximum(0, xp.floor(xp.minimum(quantity + l1.ROUNDING, bound)))
        refused = closed | (cut < self._least)
        acts = there if self._no_waits else there & ~waiting
        offers = acts & ~(accepted | chose_end | nothing | refused)
        accepted = acts & accepted
        why = xp.zeros_like(cut)
        if self._explain:  # and look again, for whoever plays for real
            own = Action(cut, whole, day)
            unsafe = offers & ~is_safe(own, cap, cap[:, 0] if budget is None else budget, selling, issue)
            offers = offers & ~unsafe
            accepts = accepts & ~xp.isnan(thread[:, 2])
            no_room = xp.zeros_like(there) if no_room is None else no_room
            why = self._why(
                quantity, price, cut, whole, waiting=waiting, accepts=accepts, accepted=accepted,
                chose_end=chose_end, nothing=nothing, closed=closed, full=full, refused=refused, unsafe=unsafe,
                no_room=no_room,
            )  # fmt: skip
            why = why * there
        answer = xp.where(accepted, float(ACCEPT), xp.where(offers, float(REJECT), float(END)))
        columns = [xp.where(offers, new, 0.0) for new in (cut, whole, day)]
        columns = [xp.where(accepted, thread[:, 2 + part], new) for part, new in enumerate(columns)]
        if not self._no_waits:
            waits = there & waiting
            columns = [xp.where(waits, thread[:, 5 + part], new) for part, new in enumerate(columns)]
            answer = xp.where(waits, float(REJECT), answer)
        return xp.stack([answer, *columns, why])

    def _day_of_sale(
        self, quantity: Array, day: Array, choice: Array, score: Array | None, cap: Array
    ) -> tuple[Array, Array]:
        """The largest room of the days that a rule may sell for, and the day to sell for."""
        xp, slots = namespace(cap), self.slots
        room = xp.where(self._for_rule, xp.floor(cap), 0.0)
        chosen = chosen_day(quantity, choice, room)
        if self._first_open is None:
            return xp.max(room), chosen
        # as told: the best day that holds the whole lot, if there is one
        held = xp.where(self._first_open, xp.floor(cap + l1.ROUNDING), 0.0)
        fits = held >= xp.maximum(1, xp.rint(quantity))[..., None]
        good = xp.where(slots == day[..., None], 1.0, 0.0) if score is None else score
        best = xp.floats(xp.argmax(xp.where(fits, good, -math.inf)), cap)
        told = xp.where(xp.any(fits), best, day)
        return xp.max(room), xp.where(choice == AS_TOLD, told, chosen)

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
