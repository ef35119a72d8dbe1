"""Who decides what to do in the threads of a round: rules here, networks in `neural`, behind one interface.

A decider looks at a `Situation` and L4's weights once and returns its `Intentions`: wishes for the threads of each
side. The plan then serves one thread after the other with what the threads before it have left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from marlab.market.agent.threads import Situation
from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.rules import rule_w
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.executor import Decision, HeuristicL3Executor, HeuristicL4Coordinator, corrected
from marlab.market.rules.l1 import Bools
from marlab.market.rules.plan import AS_TOLD, Revise, Wishes, by_weight

Weigh = Callable[[Situation], Array]
"""L4: weights [K] of the threads, summing to 1."""


@dataclass(frozen=True)
class Intentions:
    """The wishes for one round."""

    wishes: dict[bool, Wishes]
    """By side (True: selling), each for a batch of one; a side without threads is missing."""
    explain: Callable[[int, bool], dict[str, Any]]
    """Plain values for the decision log: how the wish for thread `i` came about, given whether there was no room."""
    revise: Revise | None = field(default=None, kw_only=True)
    """What a learner makes of each wish to sell when its turn comes."""


class Decider(Protocol):
    """L3: wishes for all threads of a round."""

    def __call__(self, at: Situation, alpha: Array) -> Intentions:
        """Look at a round once."""


def wishes_of(
    at: Situation, alpha: Array, decision: Decision, strength: Array | float = 0.0, days: Array | None = None
) -> dict[bool, Wishes]:
    """Wishes for all threads of a round, made at once.

    Acceptances come first, then the others by weight. A sale goes to the best day that still holds the whole lot: who
    decides for all threads at once cannot know what the others of the round will use, and several offers that want
    the same day would all but one be cut. `strength` [K]: by how much more than 1 residuals count; `days` [K, H+1]:
    how good each day is, by default only the decision's.
    """
    action = corrected(at.base, decision, strength)
    sides = {}
    for selling in (False, True):
        here = at.of_side(selling)
        if len(here):
            op, zero = np.asarray(decision.op)[here], np.zeros((1, len(here)), np.int64)
            order = by_weight(alpha[here])
            order = order[np.argsort(op[order] != ACCEPT, kind="stable")]
            quantity, price, day = (part[None, here] for part in action)
            sides[selling] = Wishes(
                order[None], op[None], quantity, price, day, choice=zero + AS_TOLD, rule=zero > 0,
                reason=zero, held=np.zeros((1, at.state.horizon + 1), bool),
                score=None if days is None else days[None, here],
            )  # fmt: skip
    return sides


def by_decision(at: Situation, alpha: Array, decision: Decision, strength: Array | float = 0.0) -> Intentions:
    """Intentions that follow a decision about all threads at once."""
    return Intentions(wishes_of(at, alpha, decision, strength), residual_of(decision))


def residual_of(decision: Decision) -> Callable[[int, bool], dict[str, Any]]:
    """For the decision log: the residual."""
    return lambda i, no_room: {"residual": [float(decision.quantity[i]), float(decision.price[i])]}


def pure_l1(at: Situation, alpha: Array) -> Intentions:
    """L1's baseline and its acceptance rule, nothing else."""
    zero = np.zeros(len(at.threads))
    return by_decision(at, alpha, Decision(np.where(at.accepts, ACCEPT, REJECT), zero, zero, at.base_day))


def heuristic(at: Situation, alpha: Array) -> Intentions:
    """The rule of thumb that concedes in price with every offer."""
    decision = HeuristicL3Executor().decide(at.base, at.mask, at.selling, at.length, at.accepts)
    return by_decision(at, alpha, decision, strength=alpha)


class RuleW:
    """The decider of `rules.rule_w`."""

    def __init__(self, options: RuleOptions | None = None) -> None:
        self._options = options or RuleOptions()

    def __call__(self, at: Situation, alpha: Array) -> Intentions:
        """Look at a round once."""
        sides: dict[bool, Wishes] = {}
        reasons = np.zeros(len(at.threads), np.int64)
        money = np.full((3, len(at.threads)), np.nan)  # of taking the offer, of the own lot, of waiting
        for selling in (False, True):
            here = at.of_side(selling)
            if len(here) == 0:
                continue
            threads, issue = at.side(selling)
            shared = (at.batch, at.batch_caps, threads, issue, alpha[None, here])
            if selling:
                wishes, worth = rule_w.sell(*shared, self._options)
                cost = float(at.state.production_cost)
                taken = threads.received.quantity[0] * (threads.received.price[0] - cost)
                money[:, here] = taken, wishes.quantity[0] * (wishes.price[0] - cost), worth[0]
            else:
                wishes = rule_w.buy(*shared)
            sides[selling], reasons[here] = wishes, wishes.reason[0]

        def explain(i: int, no_room: bool) -> dict[str, Any]:
            full = no_room and reasons[i] >= rule_w.FIRST_SALE_REASON
            told: dict[str, Any] = {"rule": "no room" if full else rule_w.RULE_REASONS[reasons[i]]}
            if at.threads[i].selling:
                values = (None if value != value else round(float(value), 2) for value in money[:, i])
                told["alternatives"] = dict(zip(("take", "offer", "wait"), values))
            return told

        return Intentions(sides, explain)


def ablated(inner: Decider, residual_off: bool, op_head_off: bool) -> Decider:
    """Another decider with its operators or its offers replaced by those of pure L1."""

    def decide(at: Situation, alpha: Array) -> Intentions:
        own, plain = inner(at, alpha), pure_l1(at, alpha)
        sides = {}
        for side, wishes in own.wishes.items():
            theirs = plain.wishes[side]
            if op_head_off:
                wishes = wishes._replace(op=theirs.op)
            if residual_off:
                offer = {name: getattr(theirs, name) for name in ("quantity", "price", "day", "choice", "score")}
                wishes = wishes._replace(**offer)
            sides[side] = wishes

        def explain(i: int, no_room: bool) -> dict[str, Any]:
            return own.explain(i, no_room) | (plain.explain(i, no_room) if residual_off else {})

        return Intentions(sides, explain)

    return decide


def divided(at: Situation, first: Intentions, second: Intentions, by_first: Bools) -> Intentions:
    """The first's wishes in some threads [K], the second's in the others and its order in all."""
    sides = {}
    for side, other in second.wishes.items():
        mine, here = first.wishes[side], by_first[at.of_side(side)][None]
        names = ("op", "quantity", "price", "day", "choice", "rule", "reason")
        chosen = {name: np.where(here, getattr(mine, name), getattr(other, name)) for name in names}
        sides[side] = other._replace(**chosen, score=mine.score)
    return Intentions(sides, lambda i, no_room: (first if by_first[i] else second).explain(i, no_room))


def uniform_weights(at: Situation) -> Array:
    """[K] all the same."""
    return np.full(len(at.threads), 1 / max(1, len(at.threads)))


def heuristic_weights(at: Situation) -> Array:
    """[K] by the teacher's rule."""
    return HeuristicL4Coordinator().weights(at.days, at.priorities)
