"""What deciders wish: rules, networks, and parts of both."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.agent.decide import (
    Neural,
    NeuralWeights,
    Weigh,
    ablated,
    heuristic_weights,
    partly,
    pure_l1,
    uniform_weights,
)
from marlab.market.agent.plan import make_plan
from marlab.market.agent.rule import RuleW
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import TemporalDecisionTransformer
from marlab.market.rules.safety import Ledger
from tests.market.days import a_day
from tests.market.thread_cases import RULES, open_days, situation, some_threads


@pytest.mark.parametrize("weigh", [heuristic_weights, uniform_weights, NeuralWeights(GlobalCoordinator().eval())])
def test_weights_are_shares(weigh: Weigh) -> None:
    rng = np.random.default_rng(2)
    for count in range(0, 51, 5):
        at = situation(a_day(), some_threads(a_day(), count, rng), RULES["economic"])
        alpha = weigh(at)
        assert alpha.shape == (count,) and (alpha >= 0).all()
        assert alpha.sum() == pytest.approx(1 if count else 0, abs=1e-6)
        mixed = [at.threads[i] for i in rng.permutation(count)]
        again = situation(a_day(), mixed, RULES["economic"])
        by_name = dict(zip((t.partner for t in at.threads), alpha))
        np.testing.assert_array_equal(weigh(again), [by_name[t.partner] for t in again.threads])


def test_an_untrained_network_wishes_what_pure_l1_wishes() -> None:
    network = Neural(TemporalDecisionTransformer(d_model=16, n_layers=1).eval())
    for state, rng in open_days(20, 8):
        for options in RULES.values():
            at = situation(state, some_threads(state, 5, rng), options)
            alpha = heuristic_weights(at)
            ledger = Ledger(state, options)
            plain = make_plan(at, pure_l1(at, alpha), alpha, ledger).answers
            fresh = make_plan(at, network(at, alpha), alpha, ledger).answers
            assert [(a.op, a.offer) for a in plain.values()] == [(a.op, a.offer) for a in fresh.values()]


def disturbed_network() -> TemporalDecisionTransformer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = TemporalDecisionTransformer(d_model=16, n_layers=1).eval()
        for head in (network.op_head, network.time_head, network.q_head[-1], network.p_head[-1]):
            torch.nn.init.normal_(head.weight)  # type: ignore[arg-type]
    return network


def test_switches_replace_a_part_of_what_a_network_wants() -> None:
    inner = Neural(disturbed_network())
    differences = 0
    for state, rng in open_days(10, 9):
        at = situation(state, some_threads(state, 5, rng), RULES["economic"])
        alpha = uniform_weights(at)
        full, plain = inner(at, alpha), pure_l1(at, alpha)
        no_residual, no_op = ablated(inner, True, False)(at, alpha), ablated(inner, False, True)(at, alpha)
        for i in range(5):
            wants, base = full.wish(i, at.caps), plain.wish(i, at.caps)
            assert no_residual.wish(i, at.caps) == (wants.op, base.action)
            assert no_op.wish(i, at.caps) == (base.op, wants.action)
            assert no_residual.explain(i)["residual"] == [0, 0] and no_op.explain(i) == full.explain(i)
            differences += wants.op != base.op
            differences += wants.action != base.action
    assert differences > 20


def test_the_rule_decides_purchases_and_where_the_network_is_unsure() -> None:
    learnt, rule = Neural(disturbed_network()), RuleW()
    bought = unsure = sure = 0
    for state, rng in open_days(20, 9):
        at = situation(state, some_threads(state, 5, rng), RULES["economic"])
        alpha, left = heuristic_weights(at), Ledger(state, RULES["economic"]).caps
        network, by_rule, shared = learnt(at, alpha), rule(at, alpha), partly(learnt, rule, 0.99, True)(at, alpha)
        for i, selling in enumerate(at.selling):
            expected = network if selling and network.confidence(i) >= 0.99 else by_rule
            assert shared.wish(i, left) == expected.wish(i, left) and shared.explain(i) == expected.explain(i)
            bought, sure = bought + (not selling), sure + (expected is network)
            unsure += bool(selling) and expected is by_rule
    assert min(bought, unsure, sure) > 3


def test_weights_strengthen_residuals_only_with_modulation() -> None:
    network, moved = disturbed_network(), 0
    for state, rng in open_days(10, 10):
        at = situation(state, some_threads(state, 3, rng), RULES["economic"])
        alpha, left = heuristic_weights(at), Ledger(state, RULES["economic"]).caps
        plain, strong = Neural(network)(at, alpha), Neural(network, modulation=True)(at, alpha)
        for i in range(len(at.threads)):
            price, stronger = plain.wish(i, left).action, strong.wish(i, left).action
            assert price is not None and stronger is not None
            residual = float(price.price - at.base.price[i])
            assert float(stronger.price - at.base.price[i]) == pytest.approx((1 + alpha[i]) * residual)
            moved += abs(residual) > 0.1
    assert moved > 5
