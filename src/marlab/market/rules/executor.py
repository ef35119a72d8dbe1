"""L3 and L4 without learning: acceptance, the heuristic executor, and the coordinator that teaches L4's network; and
what deciders wish, from decisions and from parts of two deciders.

Every function works on threads with any leading dimensions `...`, if it does not say otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.rules import goals, l1
from marlab.market.rules.arrays import namespace
from marlab.market.rules.l1 import Action, Bools, Issue
from marlab.market.rules.plan import AS_TOLD, Wishes, by_weight

TOLERANCE = 0.1
"""A price may be this much worse than the goal's and still be accepted by rule."""
REACH = 3.0
"""Days over which two deliveries get in each other's way."""
TINY = 1e-30
"""Keeps a division by a sum of nothing finite."""


class Decision(NamedTuple):
    """What L3 wants in each thread: each [...]."""

    op: NDArray[np.int64]  # logs.ACCEPT, REJECT (with an offer) or END
    quantity: Array  # residual, to be added to the baseline
    price: Array  # residual
    day: Array  # days from today


def corrected(base: Action, decision: Decision, alpha: Array | float = 0.0) -> Action:
    """Baseline plus residual, the residual strengthened by L4's weight: each [...]; to be clipped."""
    strength = 1 + alpha
    quantity = base.quantity + strength * decision.quantity
    return Action(quantity, base.price + strength * decision.price, decision.day)


def good_price(offer: Action, goal: Array, selling: Bools | bool) -> Bools:
    """Whether an offer's price is at most a tenth worse than the goal [..., 16] asks in its bucket: [...]."""
    xp = namespace(goal)
    _, price = goals.part(goal, selling, goals.bucket_of(xp.maximum(offer.day, 0)))
    selling = xp.asarray(selling, goal)
    return xp.where(selling, offer.price >= (1 - TOLERANCE) * price, offer.price <= (1 + TOLERANCE) * price)


def rule_accepts(offer: Action, goal: Array, cap: Array, budget: Array, selling: Bools | bool, issue: Issue) -> Bools:
    """Whether the partner's offer (nan: none) fits L1 and has a good price: [...]."""
    xp = namespace(goal)
    known = ~xp.isnan(offer.price)
    offer = Action(*(xp.zero_nan(part) for part in offer))
    return known & good_price(offer, goal, selling) & l1.can_accept(offer, cap, budget, selling, issue)


class HeuristicL3Executor:
    """Concedes in price with every offer of the thread; buyers ask a little less for late days, sellers early ones."""

    def decide(
        self, base: Action, mask: Array, selling: Bools, history_length: Array, accepts: Bools | bool = False
    ) -> Decision:
        """Residuals and days for threads with baselines [...], time masks [..., H+1]; `accepts` by `rule_accepts`."""
        xp = namespace(mask)
        selling, accepts = xp.asarray(selling, mask), xp.asarray(accepts, mask)
        concession = xp.minimum(0.02 * xp.asarray(history_length, mask), 0.1)
        price = xp.where(selling, -concession, concession) * base.price
        quantity = xp.where(selling, 0.1 * concession, -0.1 * (1 - concession)) * base.quantity
        is_open = mask == 0
        earliest, latest = xp.argmax(is_open), mask.shape[-1] - 1 - xp.argmax(xp.flip(is_open))
        day = xp.where(xp.any(is_open), xp.floats(xp.where(selling, earliest, latest), mask), base.day)
        op = xp.expand(xp.where(accepts, ACCEPT, REJECT), day.shape)
        return Decision(op, quantity, price, day)


class HeuristicL4Coordinator:
    """Weights threads by urgency and priority, less where many deliver around the same day."""

    def weights(self, days: Array, priorities: Array, there: Bools | None = None) -> Array:
        """alpha [..., K], summing to 1, from `days` (delta*) and `features.priority`, both [..., K].

        `there` [..., K]: which threads exist, by default all; the others weigh nothing.
        """
        xp = namespace(days)
        index = xp.arange(days.shape[-1], days)
        conflict = xp.exp(-xp.abs(days[..., :, None] - days[..., None, :]) / REACH)
        conflict = conflict * (index[:, None] != index)
        if there is not None:
            conflict, priorities = conflict * there[..., None, :], priorities * there
        raw = priorities / (days + 1) / (1 + conflict.sum(-1))
        return raw / xp.maximum(raw.sum(-1)[..., None], TINY)


# --- wishes for the threads [N, K] of one side, S = H + 1 days of a plan ------------------------------------------


def wishes_of(
    base: Action, decision: Decision, alpha: Array, slots: int, strength: Array | float = 0.0, days: Array | None = None
) -> Wishes:
    """Wishes for threads [N, K] that were decided all at once.

    Acceptances come first, then the others by weight. A sale goes to the best day that still holds the whole lot: who
    decides for all threads at once cannot know what the others of the round will use, and several offers that want
    the same day would all but one be cut. `strength` [N, K]: by how much more than 1 residuals count; `days`
    [N, K, S]: how good each day is, by default only the decision's; `slots`: S.
    """
    xp = namespace(alpha)
    quantity, price, day = corrected(base, decision, strength)
    order = by_weight(alpha)
    order = xp.gather(order, xp.argsort(1 * (xp.gather(decision.op, order) != ACCEPT)))
    zero = xp.zeros_like(order)
    held = xp.zeros((len(alpha), slots), alpha) > 0
    return Wishes(
        order, decision.op, quantity, price, day, choice=zero + AS_TOLD, rule=zero > 0, reason=zero, held=held,
        score=days,
    )  # fmt: skip


def plain_decision(base: Action, mask: Array, accepts: Bools) -> Decision:
    """L1's baseline and its acceptance rule, nothing else; `mask` [..., S] by `l1.time_mask`."""
    xp = namespace(mask)
    zero = xp.zeros_like(base.quantity)
    return Decision(xp.where(accepts, ACCEPT, REJECT), zero, zero, open_day(base.day, mask))


def open_day(day: Array, mask: Array) -> Array:
    """A day [...], or the first open one where it is closed; meaningless where all are closed."""
    xp = namespace(mask)
    return xp.floats(xp.where(l1.at(mask, day) == 0, day, xp.floats(xp.argmax(mask == 0), day)), mask)


def ablated(own: Wishes, other: Wishes, residual_off: bool, op_head_off: bool) -> Wishes:
    """Wishes with the operators or the offers of another decider."""
    if op_head_off:
        own = own._replace(op=other.op)
    if residual_off:
        own = own._replace(
            quantity=other.quantity, price=other.price, day=other.day, choice=other.choice, score=other.score
        )
    return own


def divided(first: Wishes, second: Wishes, by_first: Bools) -> Wishes:
    """The first's wishes in some threads [N, K], the second's in the others and its order in all."""
    xp = namespace(first.quantity)
    names = ("op", "quantity", "price", "day", "choice", "rule", "reason")
    chosen = {name: xp.where(by_first, getattr(first, name), getattr(second, name)) for name in names}
    return second._replace(**chosen, score=first.score)
