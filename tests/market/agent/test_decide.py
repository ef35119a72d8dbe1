"""What deciders wish: rules, networks, and parts of both."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market.agent.decide import Weigh, ablated, pure_l1
from marlab.market.agent.neural import Neural, NeuralWeights
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.rules.round_state import heuristic_weights, uniform_weights
from tests.market.agent.test_neural import OFFER, columns, disturbed_network
from tests.market.days import a_day
from tests.market.network_cases import numpy_l3, numpy_l4
from tests.market.thread_cases import RULES, open_days, situation, some_threads


@pytest.mark.parametrize(
    "weigh", [heuristic_weights, uniform_weights, NeuralWeights(numpy_l4(GlobalCoordinator().eval()))]
)
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


def test_switches_replace_a_part_of_what_a_network_wants() -> None:
    inner = Neural(numpy_l3(disturbed_network()))
    differences = 0
    for state, rng in open_days(10, 9):
        at = situation(state, some_threads(state, 5, rng), RULES["economic"])
        alpha = uniform_weights(at)
        full, plain = inner(at, alpha), pure_l1(at, alpha)
        no_residual, no_op = ablated(inner, True, False)(at, alpha), ablated(inner, False, True)(at, alpha)
        for side in full.wishes:
            for made, op, offer in ((no_residual, full, plain), (no_op, plain, full)):
                np.testing.assert_array_equal(columns(made, side, "op"), columns(op, side, "op"))
                np.testing.assert_array_equal(columns(made, side, *OFFER), columns(offer, side, *OFFER))
            differences += int((columns(full, side, "op", *OFFER) != columns(plain, side, "op", *OFFER)).sum())
        for i in range(5):
            assert no_residual.explain(i, False)["residual"] == [0, 0]
            assert no_op.explain(i, False) == full.explain(i, False)
    assert differences > 20
