"""Heads around rule W: what a learner may do otherwise in a selling thread, and how it is served.

A learner chooses in every selling thread of a round between what the rule would do and something else: another
operator, lot, price or day. Entry 0 of every head is "as the rule" and carries a bonus, so without learning the
likeliest play *is* the rule. Threads share room, so they are served one after the other, in the rule's own order (its
acceptances first, then by L4's weights), and what a thread may choose depends on what the ones before it took. Choices
that would do the same as the rule, or that do not fit, are masked: nothing is altered after it was chosen.

Pure functions for numpy (play) and torch (the vector market). Letters: N factories, K selling threads, S days of a
plan, C = 20 entries of all heads, D inputs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from marlab.market.logs.daystate import Array, DayState
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import bargain, plan, records, rule_w
from marlab.market.rules.arrays import namespace
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.l1 import ROUNDING, Action, Bools, Caps, Issue, L1Options
from marlab.market.rules.offers import ROUNDS
from marlab.market.rules.plan import FULLEST, NEAREST, NEXT, TODAY, Answers, Ints, Threads, Wishes
from marlab.market.rules.records import Records

AS_RULE = 0
OP_ACCEPT, OP_COUNTER, OP_LEAVE = 1, 2, 3
LOTS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
POSITIONS = (0.0, 0.5, 1.0)
DAYS = (TODAY, NEAREST, NEXT, FULLEST)
HEADS = (4, 1 + len(LOTS), 1 + len(POSITIONS), 1 + len(DAYS))
"""Entries of each head: operator, lot, price, day."""
CHOICES = sum(HEADS)
_STARTS = (0, HEADS[0], sum(HEADS[:2]), sum(HEADS[:3]))
_LEAVE = _STARTS[0] + OP_LEAVE
SLOTS = 11
"""Days that inputs show, from today on: an offer's delivery is at most ten days away."""


class Freedom(NamedTuple):
    """What a learner may do beside the usual."""

    leave: bool = False
    """Leaving is a choice also while there is room."""
    outright: bool = False
    """Lot, price and day are chosen outright: "as the rule" is closed wherever another entry is open."""


BOUND = Freedom()
"""The usual."""


def prior(bonus: float) -> list[float]:
    """[C] what is added to the logits: a bonus for doing as the rule does, and as much against leaving."""
    added = [0.0] * CHOICES
    for start in _STARTS:
        added[start + AS_RULE] = bonus
    added[_LEAVE] = -bonus
    return added


# --- the rule's view of a round -----------------------------------------------------------------------------------


class Sale(NamedTuple):
    """A round of the selling side, with what the rule wants in it."""

    state: DayState  # [N]
    threads: Threads  # [N, K]
    issue: Issue  # each [N]
    alpha: Array  # [N, K] L4's weights
    wishes: Wishes
    worth: Array  # [N, K] what waiting is worth; nan: not known
    room: Array  # [N, S] units that the rule may still sell, by day


def look(
    state: DayState, caps: Caps, threads: Threads, issue: Issue, alpha: Array, options: RuleOptions,
    told: tuple[Wishes, Array] | None = None,
) -> Sale:  # fmt: skip
    """What the rule wants in a round; `told`: as `rule_w.sell`, where it is at hand."""
    xp = namespace(state.day)
    wishes, worth = told or rule_w.sell(state, caps, threads, issue, alpha, options)
    room = xp.where(_on_offer(caps.sell, issue) & ~wishes.held, xp.floor(caps.sell), 0.0)
    return Sale(state, threads, issue, alpha, wishes, worth, room)


def _on_offer(cap: Array, issue: Issue) -> Bools:
    slots = namespace(cap).arange(cap.shape[-1], cap)
    return (slots >= issue.first[..., None]) & (slots <= issue.last[..., None])


# --- inputs -------------------------------------------------------------------------------------------------------

DAY_SIZE = 19 + SLOTS
PARTNER_SIZE = 24
THREAD_SIZE = 29
POOL_SIZE = 8
INPUTS = DAY_SIZE + PARTNER_SIZE + THREAD_SIZE + POOL_SIZE
"""D."""


def partner_inputs(known: Records, day: Array) -> Array:
    """[..., P, 24] what the records tell about partners; it changes from day to day only. `day`: [...]."""
    xp = namespace(known.units)
    met, agreed = xp.maximum(1, known.negotiations), xp.maximum(1, known.agreements)
    offers = known.offers + 2
    slots = xp.arange(records.HEARD, known.units)
    there = slots < known.heard_count[..., None]
    heard = xp.maximum(1, xp.floats(there.sum(-1), known.units))

    def share(which: Bools) -> Array:
        return xp.floats((there & which).sum(-1), known.units) / heard

    size = xp.where(there, known.heard_quantity, 0.0).sum(-1) / heard
    position = xp.where(there, known.heard_position, 0.0).sum(-1) / heard
    return xp.stack(
        [
            known.negotiations > 0, xp.minimum(known.negotiations / 50, 2), known.agreements / met,
            records.leaving(known), known.late_left / xp.maximum(10, known.late_offers),
            (known.taken + 0.3) / (offers + 4), known.taken_units / xp.maximum(1, known.taken) / 10,
            xp.minimum(known.largest_lot / 10, 3), xp.minimum(known.last_lot / 10, 3),
            known.at_highest / agreed, known.at_lowest / agreed,
            xp.minimum(known.patient_highest / 3, 1), xp.minimum(known.patient_lowest / 3, 1),
            1.0 * records.is_patient(known), 1.0 * records.stays(known), 1.0 * records.only_today(known),
            xp.minimum(known.failures_in_a_row / 10, 1), known.lasted.sum(-1) / xp.minimum(met, records.LATEST) / 20,
            xp.minimum(records.units_lately(known, day[..., None]) / 50, 3), xp.minimum(size / 10, 3), position,
            share(known.heard_position > 0.9), share(known.heard_position < 0.1), share(known.heard_ahead == 0),
        ]
    )  # fmt: skip


def inputs(sale: Sale, own: Action, partners: Array) -> Array:
    """[N, K, D] what a learner sees of every thread.

    `own`: my last offer of the day in each thread, each [N, K], nan without one; `partners` [N, K, 24] of
    `partner_inputs`.
    """
    xp, (n, k) = namespace(sale.alpha), sale.alpha.shape
    day = day_inputs(sale.state, sale.room)
    thread, pool = _thread_inputs(sale, own)
    parts = [
        xp.expand(day[:, None, :], (n, k, DAY_SIZE)),
        partners,
        thread,
        xp.expand(pool[:, None, :], (n, k, POOL_SIZE)),
    ]
    return xp.cat(parts)


def day_inputs(state: DayState, room: Array) -> Array:
    """[N, 30] the factory's day."""
    xp = namespace(state.day)
    left = state.n_steps - state.day
    lines = xp.maximum(1, state.n_lines)
    margin = xp.maximum(1.0, state.price_out - state.production_cost)
    storage = state.storage_cost * state.price_in
    columns = [
        state.day / 100, left / 100, xp.minimum(left, 20) / 20, xp.minimum(state.day, 5) / 5, left <= SLOTS,
        state.can_buy, state.n_products / 4, state.n_consumers / 8, state.n_suppliers / 8,
        xp.minimum(state.inventory_input / lines, 3), state.inventory_input >= state.n_lines,
        xp.minimum(state.exogenous_in_quantity / lines, 3), xp.minimum(state.exogenous_in_mean / lines, 3),
        xp.clip(state.balance / xp.maximum(1, state.initial_balance), 0, 3), margin / xp.maximum(1, state.price_out),
        xp.minimum(storage * left / margin, 5), state.shortfall_penalty * state.price_out / margin,
        xp.minimum(100 * margin / xp.maximum(1, state.initial_balance), 3), room[..., :SLOTS].sum(-1) / 100,
    ]  # fmt: skip
    return xp.cat([xp.stack(columns), room[..., :SLOTS] / 10])


def _thread_inputs(sale: Sale, own: Action) -> tuple[Array, Array]:
    """[N, K, 29] of each thread, and [N, 8] of all together."""
    state, threads, issue, wishes = sale.state, sale.threads, sale.issue, sale.wishes
    xp = namespace(sale.alpha)
    low, high = issue.price_min[:, None], issue.price_max[:, None]
    span = xp.maximum(1.0, high - low)
    margin = xp.maximum(1.0, high - state.production_cost[:, None])
    here = 1.0 * threads.there

    def terms(offer: Action) -> tuple[Array, Array, Array, Array]:
        known = ~xp.isnan(offer.quantity)
        place = (offer.price - low) / span
        return (
            1.0 * known,
            xp.minimum(xp.zero_nan(offer.quantity) / 10, 3),
            xp.zero_nan(place),
            xp.zero_nan(offer.day) / 10,
        )

    received, mine = terms(threads.received), terms(own)
    asked = xp.zero_nan(threads.received.quantity)
    day = xp.clip(xp.zero_nan(threads.received.day), 0, sale.room.shape[-1] - 1)
    room = xp.take(sale.room[:, None, :], day)  # [N, K]
    money = asked * (xp.zero_nan(threads.received.price) - state.production_cost[:, None]) * received[0]
    accepts = 1.0 * (wishes.op == ACCEPT)
    waiting = xp.zero_nan(sale.worth) / (10 * margin)
    heard = ~xp.isnan(threads.heard.quantity)
    count = xp.floats(heard.sum(-1), here)
    most = xp.where(heard, threads.heard.quantity, 0.0).sum(-1) / xp.maximum(1, count)
    place = xp.floats(xp.argsort(wishes.order), here)
    columns = [
        threads.round / ROUNDS, threads.round == 0, xp.minimum(threads.round, 3) / 3, *received,
        received[0] * (asked <= room), money / (10 * margin), *mine, 1.0 * xp.isnan(sale.worth), waiting,
        money / (10 * margin) - waiting, accepts, xp.minimum(wishes.quantity / 10, 3), (wishes.price - low) / span,
        *(wishes.choice == choice for choice in DAYS), 1.0 * bargain.is_patient(threads), sale.alpha,
        place / 8, count / ROUNDS, xp.minimum(most / 10, 3), span / margin,
    ]  # fmt: skip
    each = xp.stack(columns) * here[..., None]
    offered = received[0] * here
    pool = [
        here.sum(-1) / 8, offered.sum(-1) / 8, (asked * offered).sum(-1) / 50, (accepts * offered).sum(-1) / 8,
        (asked * accepts * offered).sum(-1) / 20, (wishes.quantity * here).sum(-1) / 50,
        xp.max(waiting * here), (here * bargain.is_patient(threads)).sum(-1) / 8,
    ]  # fmt: skip
    return each, xp.stack(pool)


# --- the order of threads -------------------------------------------------------------------------------------------

ORDER_BONUS = 2.0
"""What a place in the rule's own order counts: scores that differ by more change it."""


def order_keys(sale: Sale, scores: Array) -> Array:
    """[N, K] keys by which threads are served, the largest first: the rule's order with scores [N, K] added."""
    xp = namespace(sale.alpha)
    place = xp.floats(xp.argsort(sale.wishes.order), sale.alpha)
    return xp.where(sale.threads.there, scores - ORDER_BONUS * place, -math.inf)


def reordered(sale: Sale, keys: Array) -> Sale:
    """The same round with threads in the order of keys [N, K]; L4's choice, where it has learnt one."""
    return sale._replace(wishes=sale.wishes._replace(order=namespace(sale.alpha).argsort(-keys)))


# --- choosing -----------------------------------------------------------------------------------------------------


class Chosen(NamedTuple):
    """What was chosen in every thread, and what could have been."""

    answers: Answers  # [N, K]
    choices: Ints  # [N, K, 4] entries of the heads
    mask: Bools  # [N, K, C] entries that were open when the thread's turn came
    free: Bools  # [N, K] threads in which there was anything to choose


def serve(
    sale: Sale,
    options: L1Options,
    logits: Array,
    noise: Array | None = None,
    freedom: Freedom = BOUND,
    explain: bool = False,
) -> Chosen:
    """Serve all threads of a round by logits [N, K, C].

    `noise` [N, K, C] is added to the logits before the largest is taken: Gumbel noise draws from their softmax, None
    is greedy play.
    """
    turn = Turn(sale, logits if noise is None else logits + noise, freedom)
    answers = plan.plan(sale.state, options, True, sale.threads, sale.issue, sale.wishes, explain=explain, revise=turn)
    return Chosen(answers, *turn.chosen())


class Turn:
    """Chooses in one thread of every factory when its turn comes."""

    def __init__(self, sale: Sale, scores: Array, freedom: Freedom = BOUND) -> None:
        """`scores` [N, K, C]: logits, with noise where choices are to be drawn."""
        xp = namespace(sale.alpha)
        self._sale, self._scores, self._freedom = sale, scores, freedom
        self._open = _on_offer(sale.room, sale.issue) & ~sale.wishes.held
        low, high = sale.issue.price_min[:, None], sale.issue.price_max[:, None]
        places = xp.asarray(list(POSITIONS), sale.alpha)
        self._prices = xp.ceil(low + places * (high - low) - ROUNDING)  # [N, 3]
        ends = (self._prices[:, 1:] != low) & ((self._prices[:, 1:] != high) | (places[1:] == 1))
        self._distinct = xp.cat([low == low, ends])  # [N, 3] prices that are not one of the others
        # what never changes in a round: [1, entries] values of the heads' entries but the first
        self._ops, self._lots, self._days = (
            xp.asarray([float(value) for value in values], sale.alpha)[None]
            for values in ((ACCEPT, REJECT, END), LOTS, DAYS)
        )
        issue = Issue(*(bound[:, None] for bound in sale.issue))
        endless = xp.zeros_like(sale.room)[:, None] + math.inf
        self._legal = plan.is_safe(
            sale.threads.received, endless, endless[..., 0], True, issue
        )  # [N, K] but for the room
        slots = xp.arange(5, sale.alpha)
        self._earlier = slots[:, None] > slots  # [5, 5]
        if freedom.outright:  # a day that is the rule's own is a choice too
            self._earlier = self._earlier & (slots > 0)
        self._served: list[Any] = []  # (thread, choices, mask) of every turn

    def __call__(self, thread: Ints, row: Array, cap: Array) -> Array:
        """The row [N, 14] of the thread, with what was chosen for it."""
        xp, issue = namespace(cap), self._sale.issue
        scores = xp.gather_rows(self._scores, thread[:, None])[:, 0]  # [N, C]
        active = (row[:, 0] > 0) & ~(row[:, 1] > 0)  # a thread that waits for an answer repeats its offer
        op, quantity, price, choice = row[:, 8], row[:, 9], row[:, 10], row[:, 12]
        room = xp.where(self._open, xp.floor(cap), 0.0)
        largest = xp.max(room)
        free = active & (largest >= 1)
        legal, day = (
            xp.gather(self._legal, thread[:, None])[:, 0],
            xp.clip(xp.zero_nan(row[:, 4]), 0, cap.shape[-1] - 1),
        )
        taken = legal & (op == ACCEPT) & (row[:, 2] <= xp.take(cap, day))  # the rule takes it
        fits = legal & (row[:, 2] <= xp.take(room, day))
        always = active | ~active
        op_mask = xp.rows([always, free & fits & ~taken, free & taken, free & self._freedom.leave])
        chosen_op = _pick(scores, op_mask, 0)
        takes = active & xp.where(chosen_op == AS_RULE, taken, chosen_op == OP_ACCEPT)
        offers = (free & ~takes & (chosen_op != OP_LEAVE))[:, None]
        first = always[:, None]

        usual = xp.floor(xp.minimum(quantity + ROUNDING, largest))[:, None]
        outright = self._freedom.outright
        lot_mask = self._closed(
            xp.cat([first, offers & (self._lots <= largest[:, None]) & (outright | (self._lots != usual))])
        )
        chosen_lot = _pick(scores, lot_mask, 1)
        lot = _entry(quantity, self._lots, chosen_lot)

        rule_price = xp.ceil(xp.clip(price, issue.price_min, issue.price_max) - ROUNDING)[:, None]
        price_mask = self._closed(xp.cat([first, offers & self._distinct & (outright | (self._prices != rule_price))]))
        chosen_price = _pick(scores, price_mask, 2)

        days = plan.sale_days(lot, room)
        usual_day = plan.chosen_day(lot, choice, room)
        each = xp.stack([usual_day, usual_day * 0, *days])  # [N, 5]
        again = xp.any((each[:, :, None] == each[:, None, :]) & self._earlier)[:, 1:]
        holds = xp.cat([(room[:, 0] >= xp.minimum(lot, largest))[:, None], first, first, first])  # today holds the lot
        day_mask = self._closed(xp.cat([first, offers & ~again & holds]))
        chosen_day = _pick(scores, day_mask, 3)

        choices = xp.rows([chosen_op, chosen_lot, chosen_price, chosen_day])
        self._served.append((thread, choices, xp.cat([op_mask, lot_mask, price_mask, day_mask])))
        op, choice = _entry(op, self._ops, chosen_op), _entry(choice, self._days, chosen_day)
        price = _entry(price, self._prices, chosen_price)
        changed = (part[:, None] for part in (op, lot, price, row[:, 11], choice, row[:, 13]))
        return xp.cat([row[:, :8], *changed])

    def _closed(self, mask: Bools) -> Bools:
        """Entries [N, entries] of a head, without "as the rule" where it may be chosen outright."""
        if not self._freedom.outright:
            return mask
        xp = namespace(mask)
        return xp.cat([~xp.any(mask[:, 1:])[:, None], mask[:, 1:]])

    @property
    def wishes(self) -> Wishes:
        """The rule's wishes, in the order in which threads are served."""
        return self._sale.wishes

    def chosen(self) -> tuple[Ints, Bools, Bools]:
        """Choices, masks and where there was a choice, by thread."""
        xp, there = namespace(self._scores), self._sale.threads.there
        served = list(self._served)
        if len(served) < there.shape[-1]:  # empty places at the end were not served
            order = plan.ordered(self._sale.wishes, self._sale.threads)
            nothing = xp.zeros_like(order[:, 0])
            blank = xp.rows([nothing == 0 if entry in _STARTS else nothing != 0 for entry in range(CHOICES)])
            served += [(order[:, k], xp.rows([nothing] * 4), blank) for k in range(len(served), there.shape[-1])]
        back = xp.argsort(xp.rows([thread for thread, _, _ in served]))
        choices, mask = (xp.gather_rows(xp.rows([turn[part] for turn in served]), back) for part in (1, 2))
        return choices, mask, mask.sum(-1) > len(HEADS)


def _pick(scores: Array, mask: Bools, head: int) -> Ints:
    """The entry [N] of a head with the largest score among the open ones of mask [N, entries]."""
    xp, start = namespace(scores), _STARTS[head]
    return xp.argmax(xp.where(mask, scores[:, start : start + HEADS[head]], -math.inf))


def _entry(usual: Array, others: Array, chosen: Ints) -> Array:
    """[N] what was chosen: the usual value [N], or one of the others [N or 1, entries - 1]."""
    xp = namespace(usual)
    every = xp.cat([usual[:, None], xp.expand(others, (len(usual), others.shape[-1]))])
    return xp.gather(every, chosen[:, None])[:, 0]
