"""Rule W: a scripted executor that earns well in this simulator, and the floor that learning has to beat.

It rests on three facts. Stock is bought once, because it is never used up: buy the need of `economic.need` at once, at
any price. Sales are limited by demand: weigh every offer against what the partner may still bring, keep offering to
whoever stays, with lots that it has shown to take (`bargain`). And a day's sales beyond what can be made that day
only cost: every offer and acceptance of a round takes its room before the next one.

How partners bargain and what they take at which price comes from `records.Records`, filled on earlier days. What to
accept is decided first, the largest offers first; then offers are made in the order of L4's weights.

Letters: N factories, K threads of one side, S = H + 1 days of a plan.
"""

from __future__ import annotations

import math

from marlab.market.logs.daystate import Array, DayState
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import bargain, economic
from marlab.market.rules.arrays import namespace
from marlab.market.rules.bargain import ManyOptions, RuleOptions, Terms
from marlab.market.rules.habits import sights
from marlab.market.rules.l1 import Bools, Caps, Issue
from marlab.market.rules.plan import AS_TOLD, Ints, Threads, Wishes, by_weight

SPARE_NEED = 4
"""With a need of at least this, an offer of one unit too many is accepted."""
FILLING_DAYS = 2
"""A middle factory that fills its stock sells nothing for this many days."""
NOTHING_NEEDED, FITS, SHARE, GOOD, FIRST_SALE_REASON = range(5)
RULE_REASONS = ("nothing needed", "fits the need", "share of the need", "good enough", *bargain.SALE_REASONS)
"""Texts for `Wishes.reason`."""


def buy(state: DayState, caps: Caps, threads: Threads, issue: Issue, alpha: Array) -> Wishes:
    """Wishes for the suppliers: offers for today that fit the need, at any price, and the rest split over the others.

    `issue` each [N]; `alpha` [N, K]: L4's weights.
    """
    xp = namespace(state.day)
    largest = _largest_first(threads)
    accepted, need = _purchases(state, caps, threads, largest)
    order = _accepted_first(accepted, largest, alpha)
    share = _split(need, threads.there & ~accepted, order)
    wants = share >= 1
    op = xp.where(accepted, ACCEPT, xp.where(wants, REJECT, END))
    reason = xp.where(accepted, FITS, xp.where(wants, SHARE, NOTHING_NEEDED))
    hurry = threads.round >= economic.RAISE_ROUND
    price = xp.where(hurry, issue.price_max[:, None], issue.price_min[:, None])
    never = state.q_in != state.q_in
    as_told = xp.zeros_like(op) + AS_TOLD
    return Wishes(order, op, share, price, xp.zeros_like(price), as_told, threads.there, reason, never)


def sell(
    state: DayState, caps: Caps, threads: Threads, issue: Issue, alpha: Array, options: RuleOptions | ManyOptions,
    worth: Array | None = None,
) -> tuple[Wishes, Array]:  # fmt: skip
    """Wishes for the consumers, and what waiting is worth in each thread [N, K] (nan: not known).

    Offers worth taking that fit the room of their day are taken; the others are offered what suits them. `worth`: as
    `bargain.waiting` says, where it is at hand.
    """
    xp = namespace(state.day)
    held = held_back(state, options)
    terms = terms_of(state, caps, issue, options, held)
    if options.habits.learnt:
        terms = terms._replace(seen=sights(state, threads, issue))
    room = terms.room
    worth = bargain.waiting(threads, terms, options) if worth is None else worth
    largest = _largest_first(threads)
    accepted = _sales(room, threads, bargain.takes(threads, terms, worth, options), largest)
    lots = bargain.sale(threads, terms, worth, options)
    order = _accepted_first(accepted, largest, alpha)
    reason = xp.where(accepted, GOOD, FIRST_SALE_REASON + lots.reason)
    op = xp.where(accepted, ACCEPT, REJECT)
    day = xp.zeros_like(lots.quantity)
    return Wishes(order, op, lots.quantity, lots.price, day, lots.choice, threads.there, reason, held), worth


def terms_of(state: DayState, caps: Caps, issue: Issue, options: RuleOptions | ManyOptions, held: Bools) -> Terms:
    """What the selling threads of a factory share, with `held` [N, S] days for which nothing is sold."""
    room = namespace(state.day).where(held, 0.0, caps.sell)
    opening, cost = state.day[:, None] < options.opening_days, state.production_cost
    return Terms(opening, issue.price_min[:, None], issue.price_max[:, None], cost[:, None], room)


def held_back(state: DayState, options: RuleOptions | ManyOptions) -> Bools:
    """[N, S] days for which a middle factory sells nothing, because it fills its stock first."""
    slots = namespace(state.day).arange(state.horizon + 1, state.day)
    filling = state.can_buy & (state.inventory_input < state.n_lines)
    filling = filling & (state.n_steps - state.day > economic.REFILL_DAYS)
    return filling[..., None] & (slots < FILLING_DAYS) & options.fill_first


def _largest_first(threads: Threads) -> Ints:
    """[N, K] threads with an offer on the table, largest first; then the others."""
    xp = namespace(threads.round)
    units = threads.received.quantity
    return xp.argsort(xp.where(xp.isnan(units), math.inf, -units))


def _accepted_first(accepted: Bools, largest: Ints, alpha: Array) -> Ints:
    """[N, K] threads whose offer is accepted, largest first; then the others by weight; equal ones by their places."""
    xp = namespace(alpha)
    place = xp.where(accepted, xp.argsort(largest) - accepted.shape[-1], xp.argsort(by_weight(alpha)))
    return xp.argsort(place)


def _purchases(state: DayState, caps: Caps, threads: Threads, largest: Ints) -> tuple[Bools, Array]:
    """Which offers for today to accept [N, K], and the need that is left [N]."""
    xp = namespace(state.day)
    need, room, budget = economic.need(state), caps.buy[..., 0], caps.budget
    spare = xp.where(need >= SPARE_NEED, 1.0, 0.0)
    quantity, price, ahead = (xp.gather(part, largest) for part in threads.received)
    chosen = []
    for k in range(xp.most(~xp.isnan(quantity))):
        units, money = quantity[:, k], quantity[:, k] * price[:, k]
        fits = (units <= xp.minimum(need + spare, room)) & (money <= budget)
        takes = (ahead[:, k] == 0) & (need >= 1) & fits  # all False without an offer
        need, room = xp.where(takes, need - units, need), xp.where(takes, room - units, room)
        budget = xp.where(takes, budget - money, budget)
        chosen.append(takes)
    return _back(chosen, largest, threads.there), need


def _sales(room: Array, threads: Threads, wanted: Bools, largest: Ints) -> Bools:
    """Which of the offers worth taking to accept [N, K], given room by day [N, S]."""
    xp, slots = namespace(room), namespace(room).arange(room.shape[-1], room)
    quantity, _, ahead = (xp.gather(part, largest) for part in threads.received)
    wanted = xp.gather(wanted, largest) & (ahead >= 0) & (ahead < room.shape[-1])
    chosen = []
    for k in range(xp.most(~xp.isnan(quantity))):
        day = slots == ahead[:, k, None]  # [N, S]
        takes = wanted[:, k] & (quantity[:, k] <= xp.where(day, room, 0.0).sum(-1))
        room = room - xp.where(day & takes[:, None], quantity[:, k, None], 0.0)
        chosen.append(takes)
    return _back(chosen, largest, threads.there)


def _back(chosen: list[Bools], order: Ints, there: Bools) -> Bools:
    """Flags in an order of threads, of which the last may be missing, as flags of the threads [N, K]."""
    xp = namespace(there)
    none = there[:, 0] & False if not chosen else chosen[0] & False
    flags = xp.rows(chosen + [none] * (there.shape[-1] - len(chosen)))
    return xp.gather(flags, xp.argsort(order)) & there


def _split(need: Array, others: Bools, order: Ints) -> Array:
    """[N, K] the need over other suppliers in order; a small one over up to twice as many as there are units."""
    xp = namespace(need)
    need = xp.floor(xp.maximum(0, need))[:, None]
    count = others.sum(-1)[:, None]
    mine = xp.gather(others, order)
    place = xp.cumsum(1.0 * mine) - 1
    each = xp.floor(need / xp.maximum(1, count)) + (place < need % xp.maximum(1, count))
    share = xp.where(need >= count, each, 1.0 * (place < 2 * need)) * mine
    return xp.gather(share, xp.argsort(order))
