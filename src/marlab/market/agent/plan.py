"""One plan per round over the set of all active threads: both sides of `rules.plan`, as answers by partner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from marlab.market.agent.decide import Intentions
from marlab.market.agent.threads import Offer, Situation
from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import ACCEPT, END
from marlab.market.rules import plan as rules
from marlab.market.rules.l1 import issue_of
from marlab.market.rules.plan import REASONS


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


def make_plan(at: Situation, intentions: Intentions, alpha: Array, explain: bool = True) -> RoundPlan:
    """Plan a round on what L1 leaves; `explain`: answers say how they came about."""
    day = int(at.state.day)
    answers: dict[str, Answer] = {}
    unsafe = 0
    for selling, wishes in intentions.wishes.items():
        revise, issue = intentions.revise if selling else None, issue_of(at.batch, selling)
        made = rules.plan(at.batch, at.l1_options, selling, at.sides[selling], issue, wishes, explain, revise)
        unsafe += int(made.unsafe.sum())
        table = zip(*(column[0].tolist() for column in made))
        for i, (op, quantity, price, ahead, why) in zip(at.of_side(selling).tolist(), table):
            thread = at.threads[i]
            offer = None if op == END else (int(quantity), int(ahead) + day, int(price))
            waits = thread.received is None and thread.proposed is not None
            if op == ACCEPT:
                offer = thread.received
            elif waits:
                offer = thread.proposed
            details: dict[str, Any] = {"alpha": float(alpha[i])} if explain else {}
            if explain and not waits:
                base = {"baseline": [float(part[i]) for part in at.base]}
                details = base | details | intentions.explain(i, bool(why & REASONS["no room"]))
            answers[thread.partner] = Answer(op, offer, rules.reason_text(why) if explain else "", details)
    return RoundPlan(answers, unsafe)
