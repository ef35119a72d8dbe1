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
from marlab.market.rules import executor, rule_w
from marlab.market.rules.bargain import ManyOptions, RuleOptions, learnt_options
from marlab.market.rules.executor import Decision
from marlab.market.rules.habits import Learnt, position_of
from marlab.market.rules.l1 import Bools
from marlab.market.rules.plan import Revise, Wishes
from marlab.market.rules.round_state import plain_decision, rule_wishes, thumb_decision, wishes_of

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


def by_decision(at: Situation, alpha: Array, decision: Decision, strength: Array | float = 0.0) -> Intentions:
    """Intentions that follow a decision about all threads at once."""
    return Intentions(wishes_of(at, alpha, decision, strength), residual_of(decision))


def residual_of(decision: Decision) -> Callable[[int, bool], dict[str, Any]]:
    """For the decision log: the residual."""
    return lambda i, no_room: {"residual": [float(decision.quantity[i]), float(decision.price[i])]}


def pure_l1(at: Situation, alpha: Array) -> Intentions:
    """L1's baseline and its acceptance rule, nothing else."""
    return by_decision(at, alpha, plain_decision(at))


def heuristic(at: Situation, alpha: Array) -> Intentions:
    """The rule of thumb that concedes in price with every offer."""
    return by_decision(at, alpha, thumb_decision(at), strength=alpha)


class RuleW:
    """The decider of `rules.rule_w`."""

    def __init__(self, options: RuleOptions | None = None, habits: Learnt | None = None) -> None:
        """`habits`: learnt ones instead of the options."""
        self._options = options or RuleOptions()
        self._learnt = None if habits is None else [learnt_options(np.array([row])) for row in habits]

    def _of(self, at: Situation) -> RuleOptions | ManyOptions:
        return self._options if self._learnt is None else self._learnt[int(position_of(at.state))]

    def __call__(self, at: Situation, alpha: Array) -> Intentions:
        """Look at a round once."""
        sides, worth = rule_wishes(at, alpha, self._of(at))
        reasons = np.zeros(len(at.threads), np.int64)
        money = np.full((3, len(at.threads)), np.nan)  # of taking the offer, of the own lot, of waiting
        for selling, wished in sides.items():
            reasons[at.of_side(selling)] = wished.reason[0]
        if worth is not None:
            received, wished, cost = at.sides[True].received, sides[True], float(at.state.production_cost)
            taken = received.quantity[0] * (received.price[0] - cost)
            money[:, at.of_side(True)] = taken, wished.quantity[0] * (wished.price[0] - cost), worth[0]

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
        sides = {
            side: executor.ablated(mine, plain.wishes[side], residual_off, op_head_off)
            for side, mine in own.wishes.items()
        }

        def explain(i: int, no_room: bool) -> dict[str, Any]:
            return own.explain(i, no_room) | (plain.explain(i, no_room) if residual_off else {})

        return Intentions(sides, explain)

    return decide


def divided(at: Situation, first: Intentions, second: Intentions, by_first: Bools) -> Intentions:
    """The first's wishes in some threads [K], the second's in the others and its order in all."""
    sides = {
        side: executor.divided(first.wishes[side], other, at.part(by_first, side))
        for side, other in second.wishes.items()
    }
    return Intentions(sides, lambda i, no_room: (first if by_first[i] else second).explain(i, no_room))
