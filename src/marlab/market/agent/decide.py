"""Who decides what to do in the threads of a round: rules or networks, behind one interface.

A decider looks at a `Situation` and L4's weights once and returns its `Intentions`. The plan then asks for one thread
after the other what it wants, given what is left, so that a rule may react to what the same round has already used.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.market.agent.threads import Situation
from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3Inputs, TemporalDecisionTransformer
from marlab.market.rules import features, l1
from marlab.market.rules.executor import Decision, HeuristicL3Executor, HeuristicL4Coordinator, corrected
from marlab.market.rules.l1 import Action, Caps

Weigh = Callable[[Situation], Array]
"""L4: weights [K] of the threads, summing to 1."""


class Wish(NamedTuple):
    """What to do in one thread, before L1 has its say."""

    op: int  # logs.ACCEPT, REJECT (with an offer) or END
    action: Action | None  # single numbers: what to offer, also if an acceptance does not fit; None: nothing


class Intentions(Protocol):
    """The wishes for one round."""

    @property
    def order(self) -> Sequence[int]:
        """Threads in the order in which they may use what is left."""

    def wish(self, i: int, left: Caps) -> Wish:
        """What to do in thread `i`, when the threads before it have left this much."""

    def explain(self, i: int) -> dict[str, Any]:
        """Plain values for the decision log: how the wish came about."""


class Decider(Protocol):
    """L3: wishes for all threads of a round."""

    def __call__(self, at: Situation, alpha: Array) -> Intentions:
        """Look at a round once."""


def by_weight(at: Situation, alpha: Array) -> list[int]:
    """Threads by decreasing weight; equal ones by their partners' names."""
    return sorted(range(len(at.threads)), key=lambda i: (-alpha[i], at.threads[i].partner))


class Batch:
    """Wishes for all threads of a round, made at once.

    Acceptances come first, then the others by weight. A sale goes to the best day that still holds the whole lot: who
    decides for all threads at once cannot know what the others of the round will use, and several offers that want
    the same day would all but one be cut.
    """

    def __init__(
        self, at: Situation, alpha: Array, decision: Decision, strength: Array | float = 0.0, days: Array | None = None
    ) -> None:
        """`strength` [K]: by how much more than 1 residuals count; `days` [K, H+1]: how good each day is, by default
        only the decision's."""
        self.order = sorted(by_weight(at, alpha), key=lambda i: decision.op[i] != ACCEPT)
        self._at, self._decision, self._days = at, decision, days
        self._action = corrected(at.base, decision, strength)

    def wish(self, i: int, left: Caps) -> Wish:
        """The wish of thread `i`, when the threads before it have left this much."""
        action = Action(*(part[i] for part in self._action))
        if self._at.selling[i]:
            room = np.where(self._at.mask[i] == 0, np.floor(left.sell + l1.ROUNDING), 0)
            fits = room >= max(1, round(float(action.quantity)))
            good = np.arange(len(room)) == action.day if self._days is None else self._days[i]
            if fits.any():
                action = action._replace(day=np.asarray(np.where(fits, good, -np.inf).argmax(), np.float64))
        return Wish(int(self._decision.op[i]), action)

    def explain(self, i: int) -> dict[str, Any]:
        """The residual."""
        return {"residual": [float(self._decision.quantity[i]), float(self._decision.price[i])]}


class Learnt(Batch):
    """Wishes of a network."""

    def __init__(
        self, at: Situation, alpha: Array, decision: Decision, chances: Array, days: Array, modulation: bool
    ) -> None:
        """`chances` [K, 3]: probabilities of the operators; `days` [K, H+1]: logits of days."""
        super().__init__(at, alpha, decision, alpha if modulation else 0.0, days)
        self._chances = chances

    def confidence(self, i: int) -> float:
        """Probability of the likeliest operator."""
        return float(self._chances[i].max())

    def explain(self, i: int) -> dict[str, Any]:
        """Residual, and probabilities of accept, reject and end."""
        chances = [round(float(chance), 6) for chance in self._chances[i]]
        return super().explain(i) | {"op_probabilities": chances}


def pure_l1(at: Situation, alpha: Array) -> Batch:
    """L1's baseline and its acceptance rule, nothing else."""
    zero = np.zeros(len(at.threads))
    return Batch(at, alpha, Decision(np.where(at.accepts, ACCEPT, REJECT), zero, zero, at.base_day))


def heuristic(at: Situation, alpha: Array) -> Batch:
    """The rule of thumb that concedes in price with every offer."""
    decision = HeuristicL3Executor().decide(at.base, at.mask, at.selling, at.length, at.accepts)
    return Batch(at, alpha, decision, strength=alpha)


def ablated(inner: Decider, residual_off: bool, op_head_off: bool) -> Decider:
    """Another decider with its operators or its offers replaced by those of pure L1."""
    return lambda at, alpha: _Mixed(inner(at, alpha), pure_l1(at, alpha), residual_off, op_head_off)


class _Mixed:
    def __init__(self, inner: Intentions, plain: Batch, residual_off: bool, op_head_off: bool) -> None:
        self.order = inner.order
        self._inner, self._plain = inner, plain
        self._residual_off, self._op_head_off = residual_off, op_head_off

    def wish(self, i: int, left: Caps) -> Wish:
        inner, plain = self._inner.wish(i, left), self._plain.wish(i, left)
        return Wish(plain.op if self._op_head_off else inner.op, plain.action if self._residual_off else inner.action)

    def explain(self, i: int) -> dict[str, Any]:
        return self._inner.explain(i) | (self._plain.explain(i) if self._residual_off else {})


class Neural:
    """L3 as a network: one batched pass for all threads of a round."""

    def __init__(self, network: TemporalDecisionTransformer, sample: bool = False, modulation: bool = False) -> None:
        """`sample`: draw operators and days instead of taking the likeliest; the draw belongs to the thread and its
        round, so the order of calls does not matter. `modulation`: L4's weights strengthen residuals."""
        self._network, self._sample, self._modulation = network, sample, modulation

    def __call__(self, at: Situation, alpha: Array) -> Learnt:
        """Look at a round once."""
        with torch.inference_mode():
            output = self._network(l3_inputs(at, bool(self._network.options["d_partner"])))
            chances = torch.softmax(output.op_logits, 1).double().numpy()
        op_logits, time_logits = output.op_logits.numpy(), output.time_logits.numpy()
        if self._sample:
            op_logits = op_logits + _noise(at, 3, "op")
            time_logits = time_logits + _noise(at, time_logits.shape[1], "day")
        day = time_logits.argmax(1).astype(np.float64)
        quantity, price = output.residual.double().numpy().T
        decision = Decision(op_logits.argmax(1), quantity, price, day)
        return Learnt(at, alpha, decision, chances, time_logits, self._modulation)


def partly(network: Neural, rule: Decider, least: float, sales_only: bool) -> Decider:
    """A network where it may decide and is sure; a rule in the other threads.

    `least`: probability of the likeliest operator below which the rule decides; `sales_only`: the rule buys.
    """

    def decide(at: Situation, alpha: Array) -> Intentions:
        learnt = network(at, alpha)
        may = at.selling if sales_only else np.ones(len(at.threads), bool)
        by_network = [bool(m) and learnt.confidence(i) >= least for i, m in enumerate(may)]
        return _Divided(learnt, rule(at, alpha), by_network)

    return decide


class _Divided:
    def __init__(self, learnt: Learnt, rule: Intentions, by_network: Sequence[bool]) -> None:
        self.order = rule.order
        self._who: list[Intentions] = [learnt if chosen else rule for chosen in by_network]

    def wish(self, i: int, left: Caps) -> Wish:
        return self._who[i].wish(i, left)

    def explain(self, i: int) -> dict[str, Any]:
        return self._who[i].explain(i)


def _noise(at: Situation, size: int, purpose: str) -> Array:
    """Gumbel noise [K, size]: added to logits, the largest is a draw from their softmax."""
    draws = []
    for thread in at.threads:
        source = random.Random(f"{at.state.day} {thread.partner} {thread.round} {purpose}")
        draws.append([source.random() for _ in range(size)])
    return -np.log(-np.log(np.clip(draws, 1e-12, 1 - 1e-12)))


def l3_inputs(at: Situation, partners: bool) -> L3Inputs:
    """The round as tensors; `partners`: with statistics of the partners."""
    threads, horizon = at.threads, at.state.horizon
    longest = max(1, min(features.MAX_HISTORY, max(len(t.history) for t in threads)))
    history = np.zeros((len(threads), longest, 4))
    present = np.zeros((len(threads), longest), bool)
    for i, thread in enumerate(threads):
        rows = np.array(thread.history[-longest:], np.float64).reshape(-1, 4)
        if len(rows):
            quantity, price, delta, mine = rows.T
            history[i, -len(rows) :] = features.history_rows(quantity, price, delta, mine > 0, horizon)
            present[i, -len(rows) :] = True
    statistics = at.partners() if partners else np.zeros((len(threads), 0))

    def tensor(values: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, np.float32))

    return L3Inputs(
        history=tensor(history), present=torch.from_numpy(present),
        goal=tensor(np.broadcast_to(at.goal, (len(threads), len(at.goal)))),
        role=torch.from_numpy(at.selling.astype(np.int64)), baseline=tensor(np.stack(at.base, -1)), aux=tensor(at.aux),
        time_open=torch.from_numpy(l1.open_mask(at.mask, at.base.day) == 0),
        rule_op=torch.from_numpy(np.where(at.accepts, ACCEPT, REJECT)), partner=tensor(statistics),
    )  # fmt: skip


def uniform_weights(at: Situation) -> Array:
    """[K] all the same."""
    return np.full(len(at.threads), 1 / max(1, len(at.threads)))


def heuristic_weights(at: Situation) -> Array:
    """[K] by the teacher's rule."""
    return HeuristicL4Coordinator().weights(at.days, at.thread_features[:, 0])


class NeuralWeights:
    """L4 as a network: one pass over all threads of a round."""

    def __init__(self, network: GlobalCoordinator) -> None:
        self._network = network

    def __call__(self, at: Situation) -> Array:
        """[K]"""
        if not at.threads:
            return np.zeros(0)
        parts = (at.thread_features.astype(np.float32), at.days.astype(np.int64), at.selling.astype(np.int64))
        context = torch.from_numpy(at.context.astype(np.float32)).unsqueeze(0)
        there = torch.ones(1, len(at.threads), dtype=torch.bool)
        with torch.inference_mode():
            alpha, _ = self._network(*(torch.from_numpy(part).unsqueeze(0) for part in parts), context, there)
        weights = alpha[0].double().numpy()
        return weights / weights.sum()
