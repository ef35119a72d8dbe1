"""The networks in numpy give what they give in torch."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import pytest
import torch

from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3PolicyModel, TemporalDecisionTransformer
from marlab.market.networks.forward import L2_KIND, L3Arrays, PlainManager, erf, plain
from marlab.market.networks.manager import HorizonManagerPPO
from tests.market.network_cases import decisions, numpy_l3, numpy_l4


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(5)


def disturbed(network: torch.nn.Module) -> torch.nn.Module:
    """Weights of a size that training gives them, also where networks start at zero."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return network.eval()


@pytest.mark.parametrize("cls", [TemporalDecisionTransformer, L3PolicyModel])
@pytest.mark.parametrize("partner", [0, 10])
def test_l3(cls: type[TemporalDecisionTransformer], partner: int) -> None:
    network = cast(TemporalDecisionTransformer, disturbed(cls(d_model=32, n_layers=2, d_partner=partner)))
    for length in (1, 7, 20):
        inputs = decisions(16, length, seed=length, partner=partner)
        with torch.inference_mode():
            expected = network(inputs)
        found = numpy_l3(network)(L3Arrays(*(part.numpy() for part in inputs)))
        for name, one, other in zip(found._fields, found, expected):
            np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-5, err_msg=name)


def test_l3_of_the_size_that_is_shipped() -> None:
    network = cast(TemporalDecisionTransformer, disturbed(TemporalDecisionTransformer()))
    inputs = decisions(8)
    with torch.inference_mode():
        expected = network(inputs)
    found = numpy_l3(network)(L3Arrays(*(part.numpy() for part in inputs)))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("options", [{}, {"positive_q": False, "spot_prices": False}, {"gap_quantities": True}])
def test_l2(options: dict[str, bool]) -> None:
    network = disturbed(HorizonManagerPPO(d_static=20, **options))  # type: ignore[arg-type]
    inputs = torch.rand(6, 20), torch.randn(6, 41, 10), torch.tensor([[1.0, 1.0]] * 6)
    with torch.inference_mode():
        expected = network(*inputs)[0].numpy()
    found = cast(PlainManager, plain(L2_KIND, network))(*(part.numpy() for part in inputs))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_l4() -> None:
    network = cast(GlobalCoordinator, disturbed(GlobalCoordinator()))
    for threads in (1, 5, 12):
        feats, context = torch.randn(threads, 24), torch.randn(30)
        days, roles = torch.randint(0, 11, (threads,)), torch.randint(0, 2, (threads,))
        there = torch.ones(1, threads, dtype=torch.bool)
        with torch.inference_mode():
            expected = network(feats[None], days[None], roles[None], context[None], there)[0][0].numpy()
        found = numpy_l4(network)(feats.numpy(), days.numpy(), roles.numpy(), context.numpy())
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_error_function() -> None:
    x = np.linspace(-5, 5, 401, dtype=np.float32)
    np.testing.assert_allclose(erf(x), [math.erf(v) for v in x], atol=3e-7)
