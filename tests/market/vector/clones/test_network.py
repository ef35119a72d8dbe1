"""The heads: what is masked is never drawn, and the rest is drawn by its probability."""

from __future__ import annotations

import torch

from marlab.market.vector.clones import network
from marlab.market.vector.clones.inputs import ALL
from marlab.market.vector.clones.network import LOTS, PRICES, Grouped, Stacked


def test_what_is_masked_is_never_drawn() -> None:
    logits = torch.randn(2000, LOTS, generator=torch.Generator().manual_seed(0)) * 5
    count = torch.arange(2000) % LOTS + 1
    chance = torch.linspace(0, 1 - 1e-7, 2000)
    found = network.drawn(network.only(logits, count), chance)
    assert (found < count).all() and (found >= 0).all()


def test_drawing_follows_the_probabilities() -> None:
    logits = torch.tensor([0.1, 0.2, 0.7]).log().expand(10_000, 3)
    found = network.drawn(logits, torch.rand(10_000, generator=torch.Generator().manual_seed(0)))
    shares = torch.bincount(found, minlength=3) / 10_000
    assert torch.allclose(shares, torch.tensor([0.1, 0.2, 0.7]), atol=0.02)


def test_prices_survive_their_positions() -> None:
    for width in range(PRICES):
        low, high = torch.tensor(20.0), torch.tensor(20.0 + width)
        prices = torch.arange(20.0, 20.0 + width + 1)
        assert torch.equal(network.price_of(network.position_of(prices, low, high), low, high), prices)
    wide = network.price_of(torch.arange(PRICES), torch.tensor(100.0), torch.tensor(133.0))
    assert wide.min() == 100 and wide.max() == 133 and (wide == wide.floor()).all()


def outputs(
    layers: network.Layers, inputs: torch.Tensor, rounds: torch.Tensor | int, day: torch.Tensor
) -> list[torch.Tensor]:
    found = network.heads(layers, inputs, rounds)
    return [*found, network.lot_logits(layers, found, day), network.price_logits(layers, found, day, day + 1)]


def test_play_and_fitting_compute_the_same() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: values + torch.randn(values.shape, generator=generator)
        for name, values in network.new_weights(3, 8, generator).items()
    }
    inputs = torch.randn(3, 2, ALL, generator=generator)
    rounds, day = (torch.randint(0, 5, (3, 2), generator=generator) for _ in range(2))
    stacked = outputs(Stacked(weights), inputs, rounds, day)
    # rows of experts 0 and 2 only, and one row of the latter
    expert, place = torch.tensor([0, 0, 2]), torch.tensor([0, 1, 1])
    grouped = outputs(
        Grouped(weights, [2, 0, 1], expert), inputs[expert, place], rounds[expert, place], day[expert, place]
    )
    for one, other in zip(stacked, grouped):
        assert torch.allclose(one[expert, place], other, atol=1e-5)
    same = torch.full((3, 2), 4)
    for one, other in zip(outputs(Stacked(weights), inputs, same, day), outputs(Stacked(weights), inputs, 4, day)):
        assert torch.allclose(one, other)
