"""Networks as deciders, and networks and rules together."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from marlab.market.agent.decide import Intentions, RuleW, pure_l1
from marlab.market.agent.neural import Neural, partly
from marlab.market.agent.plan import make_plan
from marlab.market.networks.executor import TemporalDecisionTransformer
from marlab.market.rules.round_state import heuristic_weights
from tests.market.network_cases import numpy_l3
from tests.market.thread_cases import RULES, open_days, situation, some_threads

OFFER = ("quantity", "price", "day", "choice")


def columns(intentions: Intentions, side: bool, *names: str) -> np.ndarray[Any, Any]:
    """Parts of the wishes for a side: [parts, K]."""
    return np.array([getattr(intentions.wishes[side], name)[0] for name in names], np.float64)


def test_an_untrained_network_wishes_what_pure_l1_wishes() -> None:
    network = Neural(numpy_l3(TemporalDecisionTransformer(d_model=16, n_layers=1).eval()))
    for state, rng in open_days(20, 8):
        for options in RULES.values():
            at = situation(state, some_threads(state, 5, rng), options)
            alpha = heuristic_weights(at)
            plain = make_plan(at, pure_l1(at, alpha), alpha).answers
            fresh = make_plan(at, network(at, alpha), alpha).answers
            assert [(a.op, a.offer) for a in plain.values()] == [(a.op, a.offer) for a in fresh.values()]


def disturbed_network() -> TemporalDecisionTransformer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = TemporalDecisionTransformer(d_model=16, n_layers=1).eval()
        for head in (network.op_head, network.time_head, network.q_head[-1], network.p_head[-1]):
            torch.nn.init.normal_(head.weight)  # type: ignore[arg-type]
    return network


def test_the_rule_decides_purchases_and_where_the_network_is_unsure() -> None:
    learnt, rule = Neural(numpy_l3(disturbed_network())), RuleW()
    bought = unsure = sure = 0
    for state, rng in open_days(20, 9):
        at = situation(state, some_threads(state, 5, rng), RULES["economic"])
        alpha = heuristic_weights(at)
        network, by_rule, shared = learnt(at, alpha), rule(at, alpha), partly(learnt, rule, 0.99, True)(at, alpha)
        for side in shared.wishes:
            parts = [columns(who, side, "op", *OFFER, "rule") for who in (network, by_rule, shared)]
            for k, i in enumerate(at.of_side(side)):
                by_network = side and network.chances[i].max() >= 0.99
                np.testing.assert_array_equal(parts[2][:, k], parts[0 if by_network else 1][:, k])
                assert shared.explain(i, False) == (network if by_network else by_rule).explain(i, False)
                bought, sure, unsure = bought + (not side), sure + by_network, unsure + (side and not by_network)
    assert min(bought, unsure, sure) > 3


def test_weights_strengthen_residuals_only_with_modulation() -> None:
    network, moved = disturbed_network(), 0
    for state, rng in open_days(10, 10):
        at = situation(state, some_threads(state, 3, rng), RULES["economic"])
        alpha = heuristic_weights(at)
        plain, strong = Neural(numpy_l3(network))(at, alpha), Neural(numpy_l3(network), modulation=True)(at, alpha)
        for side in plain.wishes:
            here = at.of_side(side)
            residual = columns(plain, side, "price")[0] - at.base.price[here]
            stronger = columns(strong, side, "price")[0] - at.base.price[here]
            np.testing.assert_allclose(stronger, (1 + alpha[here]) * residual, atol=1e-9)
            moved += int((np.abs(residual) > 0.1).sum())
    assert moved > 5
