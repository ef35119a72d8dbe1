"""L3 and L4 without learning: acceptance, the heuristic executor, and the coordinator that teaches L4's network.

Every function works on threads with any leading dimensions `...`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.rules import goals, l1
from marlab.market.rules.l1 import Action, Bools, Issue

TOLERANCE = 0.1
"""A price may be this much worse than the goal's and still be accepted by rule."""
REACH = 3.0
"""Days over which two deliveries get in each other's way."""


class Decision(NamedTuple):
    """What L3 wants in each thread: each [...]."""

    op: NDArray[np.int64]  # logs.ACCEPT, REJECT (with an offer) or END
    quantity: Array  # residual, to be added to the baseline
    price: Array  # residual
    day: Array  # days from today


def corrected(base: Action, decision: Decision, alpha: Array | float = 0.0) -> Action:
    """Baseline plus residual, the residual strengthened by L4's weight: each [...]; to be clipped."""
    strength = 1 + np.asarray(alpha)
    quantity = base.quantity + strength * decision.quantity
    return Action(quantity, base.price + strength * decision.price, decision.day)


def good_price(offer: Action, goal: Array, selling: Bools | bool) -> Bools:
    """Whether an offer's price is at most a tenth worse than the goal [..., 16] asks in its bucket: [...]."""
    _, price = goals.part(goal, selling, goals.bucket_of(np.maximum(offer.day, 0)))
    return np.where(selling, offer.price >= (1 - TOLERANCE) * price, offer.price <= (1 + TOLERANCE) * price)


def rule_accepts(offer: Action, goal: Array, cap: Array, budget: Array, selling: Bools | bool, issue: Issue) -> Bools:
    """Whether the partner's offer (nan: none) fits L1 and has a good price: [...]."""
    known = ~np.isnan(offer.price)
    offer = Action(*(np.where(known, part, 0) for part in offer))
    return known & good_price(offer, goal, selling) & l1.can_accept(offer, cap, budget, selling, issue)


class HeuristicL3Executor:
    """Concedes in price with every offer of the thread; buyers ask a little less for late days, sellers early ones."""

    def decide(
        self, base: Action, mask: Array, selling: Bools, history_length: Array, accepts: Bools | bool = False
    ) -> Decision:
        """Residuals and days for threads with baselines [...], time masks [..., H+1]; `accepts` by `rule_accepts`."""
        concession = np.minimum(0.02 * np.asarray(history_length), 0.1)
        price = np.where(selling, -concession, concession) * base.price
        quantity = np.where(selling, 0.1 * concession, -0.1 * (1 - concession)) * base.quantity
        is_open = mask == 0
        earliest = is_open.argmax(-1)
        latest = mask.shape[-1] - 1 - is_open[..., ::-1].argmax(-1)
        day = np.where(is_open.any(-1), np.where(selling, earliest, latest), base.day).astype(np.float64)
        op = np.broadcast_to(np.where(accepts, ACCEPT, REJECT), day.shape)
        return Decision(op, quantity, price, day)


class HeuristicL4Coordinator:
    """Weights threads by urgency and priority, less where many deliver around the same day."""

    def weights(self, days: Array, priorities: Array) -> Array:
        """alpha [..., K], summing to 1, from `days` (delta*) and `features.priority`, both [..., K]."""
        days, priorities = np.asarray(days, np.float64), np.asarray(priorities, np.float64)
        conflict = np.exp(-np.abs(days[..., :, None] - days[..., None, :]) / REACH)
        conflict = conflict * ~np.eye(days.shape[-1], dtype=bool)
        raw = priorities / (days + 1) / (1 + conflict.sum(-1))
        return raw / np.maximum(raw.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
