"""The heads: what is masked is never drawn, and the rest is drawn by its probability."""

from __future__ import annotations

import torch

from marlab.market.vector.clones import network
from marlab.market.vector.clones.inputs import ROW, SIDE, SO_FAR, THREAD
from marlab.market.vector.clones.network import LOTS, PRICES


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


def test_experts_do_not_touch_each_other() -> None:
    generator = torch.Generator().manual_seed(0)
    both = network.new_weights(2, 8, generator)
    one = {name: values[1:] for name, values in both.items()}
    row, side, thread, so_far = (torch.randn(2, 3, size, generator=generator) for size in (ROW, SIDE, THREAD, SO_FAR))
    rounds, day, lot = (torch.randint(0, 5, (2, 3), generator=generator) for _ in range(3))

    def outputs(weights: network.Weights, pick: slice) -> list[torch.Tensor]:
        given = network.first_layer(weights, row[pick], side[pick], thread[pick][:, :, None])[:, :, 0]
        hidden = network.trunk(weights, given, so_far[pick], rounds[pick])
        lots = network.lot_logits(weights, hidden, day[pick])
        prices = network.price_logits(weights, hidden, day[pick], lot[pick])
        return [*network.heads(weights, hidden, rounds[pick]), lots, prices]

    for together, alone in zip(outputs(both, slice(None)), outputs(one, slice(1, None))):
        assert torch.allclose(together[1:], alone, atol=1e-6)


def test_one_round_for_all_is_the_same_round_for_each() -> None:
    weights = network.new_weights(2, 8, torch.Generator().manual_seed(0))
    weights["leave_round"] += torch.arange(20.0)[None, :, None]
    hidden = torch.rand(2, 4, 8)
    each = network.heads(weights, hidden, torch.full((2, 4), 7))
    assert torch.allclose(network.heads(weights, hidden, 7).leave, each.leave)
