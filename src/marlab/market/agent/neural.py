"""L3 and L4 of a playing agent as networks: one batched pass for all threads of a round."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from marlab.market.agent.decide import Decider, Intentions, divided, residual_of
from marlab.market.agent.threads import Situation
from marlab.market.logs.daystate import Array
from marlab.market.networks.forward import L3Arrays, PlainCoordinator, PlainExecutor, softmax
from marlab.market.rules import features
from marlab.market.rules.arrays import namespace
from marlab.market.rules.executor import Decision
from marlab.market.rules.round_state import wishes_of


@dataclass(frozen=True)
class Learnt(Intentions):
    """Wishes of a network."""

    chances: Array
    """[K, 3] probabilities of the operators."""


class Neural:
    """L3 as a network."""

    def __init__(self, network: PlainExecutor, sample: bool = False, modulation: bool = False) -> None:
        """`sample`: draw operators and days instead of taking the likeliest; the draw belongs to the thread and its
        round, so the order of calls does not matter. `modulation`: L4's weights strengthen residuals."""
        self._network, self._sample, self._modulation = network, sample, modulation

    def __call__(self, at: Situation, alpha: Array) -> Learnt:
        """Look at a round once."""
        op_logits, residuals, time_logits = self._network(l3_inputs(at, bool(self._network.options["d_partner"])))
        chances = softmax(op_logits).astype(np.float64)
        if self._sample:
            op_logits = op_logits + _noise(at, 3, "op")
            time_logits = time_logits + _noise(at, time_logits.shape[1], "day")
        day = time_logits.argmax(1).astype(np.float64)
        quantity, price = residuals.astype(np.float64).T
        decision = Decision(op_logits.argmax(1), quantity, price, day)
        wishes = wishes_of(at, alpha, decision, alpha if self._modulation else 0.0, time_logits)
        residual = residual_of(decision)

        def explain(i: int, no_room: bool) -> dict[str, Any]:
            return residual(i, no_room) | {"op_probabilities": [round(float(chance), 6) for chance in chances[i]]}

        return Learnt(wishes, explain, chances)


def partly(network: Neural, rule: Decider, least: float, sales_only: bool) -> Decider:
    """A network where it may decide and is sure; a rule in the other threads.

    `least`: probability of the likeliest operator below which the rule decides; `sales_only`: the rule buys.
    """

    def decide(at: Situation, alpha: Array) -> Intentions:
        learnt = network(at, alpha)
        may = at.selling if sales_only else np.ones(len(at.threads), bool)
        return divided(at, learnt, rule(at, alpha), may & (learnt.chances.max(1) >= least))

    return decide


def _noise(at: Situation, size: int, purpose: str) -> Array:
    """Gumbel noise [K, size]: added to logits, the largest is a draw from their softmax."""
    draws = []
    for thread in at.threads:
        source = random.Random(f"{at.morning.game} {at.state.day} {thread.partner} {thread.round} {purpose}")
        draws.append([source.random() for _ in range(size)])
    return -np.log(-np.log(np.clip(draws, 1e-12, 1 - 1e-12)))


def l3_inputs(at: Situation, partners: bool) -> L3Arrays:
    """The round as arrays; `partners`: with statistics of the partners."""
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
    found = at.l3_inputs(history, present, statistics)
    return L3Arrays(*(part.astype(np.float32) if part.dtype.kind == "f" else part for part in found))


def rounded_weights(weights: Array) -> Array:
    """Weights [..., K] of a network to six digits, summing to 1: threads that are alike weigh the same, although
    float32 products of equal rows differ in the seventh digit from library to library."""
    xp = namespace(weights)
    whole = xp.rint(weights * 1e6)
    return whole / xp.maximum(1, whole.sum(-1)[..., None])


class NeuralWeights:
    """L4 as a network: one pass over all threads of a round."""

    def __init__(self, network: PlainCoordinator) -> None:
        self._network = network

    def __call__(self, at: Situation) -> Array:
        """[K]"""
        if not at.threads:
            return np.zeros(0)
        parts = (at.thread_features.astype(np.float32), at.days.astype(np.int64), at.selling.astype(np.int64))
        weights = self._network(*parts, at.context.astype(np.float32)).astype(np.float64)
        return rounded_weights(weights)
