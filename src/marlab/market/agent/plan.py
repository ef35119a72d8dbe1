"""One plan per round over the set of all active threads: wishes in order, each clipped by L1, each reserved.

Whatever the wishes are, a plan keeps three promises: every offer lies inside its negotiation's issues; if every offer
and every acceptance of the plan is signed, no cap and no budget of L1 is exceeded; and the plan depends on the set of
threads, not on the order in which anybody asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marlab.market.agent.decide import Intentions, Wish
from marlab.market.agent.threads import Offer, Situation
from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import l1
from marlab.market.rules.l1 import Action, Caps, Issue
from marlab.market.rules.safety import Ledger


@dataclass(frozen=True)
class Answer:
    """What to do in one thread."""

    op: int  # logs.ACCEPT, REJECT or END
    offer: Offer | None  # the partner's offer for ACCEPT, an own one for REJECT, else None
    why: str  # what L1 changed, for the decision log
    details: dict[str, Any] = field(default_factory=dict)  # baseline, weight and how the wish came about


@dataclass(frozen=True)
class RoundPlan:
    """Answers by partner."""

    answers: dict[str, Answer]
    unsafe: int = 0  # answers that a last check found outside of L1 and turned into an end; 0 unless L1 is broken


def make_plan(at: Situation, intentions: Intentions, alpha: Array, ledger: Ledger) -> RoundPlan:
    """Plan a round on what is left in the ledger; its reservations are forgotten before and kept afterwards.

    Threads whose partner still has an offer of mine to answer come first and repeat it: it may yet be signed.
    """
    ledger.reset()
    day = int(at.state.day)
    answers: dict[str, Answer] = {}
    waiting = [i for i, t in enumerate(at.threads) if t.received is None and t.proposed is not None]
    for i in waiting:
        thread = at.threads[i]
        answers[thread.partner] = Answer(REJECT, thread.proposed, "still to be answered", {"alpha": float(alpha[i])})
        if thread.proposed is not None:
            _reserve(ledger, thread.selling, thread.proposed, day)
    unsafe = 0
    for i in intentions.order:
        thread = at.threads[i]
        if thread.partner in answers:
            continue
        op, offer, why = _fitted(at, i, intentions.wish(i, ledger.caps), ledger.caps)
        if offer is not None:
            if is_safe(offer, ledger.caps, thread.selling, _one(at.issue, i), day):
                _reserve(ledger, thread.selling, offer, day)
            else:
                op, offer, why, unsafe = END, None, "unsafe", unsafe + 1
        details = {"baseline": [float(part[i]) for part in at.base], "alpha": float(alpha[i])} | intentions.explain(i)
        answers[thread.partner] = Answer(op, offer, why, details)
    return RoundPlan(answers, unsafe)


def is_safe(offer: Offer, left: Caps, selling: bool, issue: Issue, day: int) -> bool:
    """Whether an offer is an outcome of its negotiation and fits what is left."""
    quantity, when, price = offer
    inside = issue.quantity_min <= quantity <= issue.quantity_max and issue.price_min <= price <= issue.price_max
    whole = all(isinstance(part, int) for part in offer)
    action = Action(*(np.asarray(float(part)) for part in (quantity, price, when - day)))
    return bool(inside) and whole and bool(l1.can_accept(action, left.of(selling), left.budget, selling, issue))


def _fitted(at: Situation, i: int, wish: Wish, left: Caps) -> tuple[int, Offer | None, str]:
    """Operator, offer and what L1 changed: an acceptance that does not fit becomes an offer, no offer an end."""
    thread, day = at.threads[i], int(at.state.day)
    issue, why = _one(at.issue, i), ""
    if wish.op == ACCEPT and thread.received is not None:
        if is_safe(thread.received, left, thread.selling, issue, day):
            return ACCEPT, thread.received, ""
        why = "acceptance does not fit; "
    if wish.op == END:
        return END, None, "ended by choice"
    if wish.action is None or wish.action.quantity < l1.SMALLEST_TRADE - l1.ROUNDING:
        return END, None, why + "nothing wanted"
    offer, changed = _clipped(wish.action, left, thread.selling, issue, day)
    return (END if offer is None else REJECT), offer, why + changed


def _clipped(action: Action, left: Caps, selling: bool, issue: Issue, day: int) -> tuple[Offer | None, str]:
    """The legal offer nearest to an action and what was changed; a day that is full gives way to the emptiest one."""
    cap = left.of(selling)
    mask = l1.time_mask(cap, issue)
    if not (mask == 0).any():
        return None, "no day is open"
    moved = ""
    if mask[int(np.clip(np.rint(action.day), 0, len(mask) - 1))] != 0:
        moved = "day is full; "
        action = action._replace(day=np.asarray(np.where(mask == 0, cap, -1).argmax(), np.float64))
    clipped = l1.clip_action(action, cap, left.budget, selling, issue, mask)
    if not clipped.valid:
        return None, moved + ("no budget" if not selling and clipped.quantity < 1 else "no legal offer")
    reason = moved
    if clipped.quantity < np.floor(action.quantity + l1.ROUNDING):
        reason += "quantity cut; "
    if abs(clipped.price - action.price) >= 1:
        reason += "price moved into the issue; "
    return (int(clipped.quantity), int(clipped.day) + day, int(clipped.price)), reason


def _one(issue: Issue, i: int) -> Issue:
    return Issue(*(bound[i] for bound in issue))


def _reserve(ledger: Ledger, selling: bool, offer: Offer, day: int) -> None:
    quantity, when, price = offer
    ledger.reserve(selling, quantity, price, when - day)
