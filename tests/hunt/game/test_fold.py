"""Sums over short axes are what torch computes along them."""

from __future__ import annotations

import torch

from marlab.hunt.game.fold import any_of, at_least, batch_last, count_of, sum_of
from tests.hunt.helpers import seeded


def test_folds_equal_reductions() -> None:
    marked = torch.rand(50, 4, 3, generator=seeded(0)) < 0.3
    assert torch.equal(any_of(marked, 2), marked.any(2)) and torch.equal(any_of(marked, 1), marked.any(1))
    assert torch.equal(count_of(marked, 2), marked.sum(2).to(torch.uint8))
    values = torch.arange(600).view(50, 4, 3)
    assert torch.equal(sum_of(values, 1), values.sum(1)) and torch.equal(at_least(values, 7), values >= 7)
    assert not any_of(marked[..., :0], 2).any()


def test_games_lie_next_to_each_other() -> None:
    values = torch.arange(12).view(4, 3)
    turned = batch_last(values)
    assert torch.equal(turned, values) and turned.stride() == (1, 4)
