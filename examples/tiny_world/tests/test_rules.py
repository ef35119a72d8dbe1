"""A few steps computed by hand."""

from __future__ import annotations

import torch

from examples.tiny_world import rules


def test_steps_by_hand() -> None:
    state = rules.State(torch.tensor([[0, 8], [0, 1], [2, 6]]), torch.zeros(3, dtype=torch.long))
    assert rules.fewest_steps(state, 9).tolist() == [1, 1, 2]
    after = rules.step(state, torch.tensor([[0, 1], [2, 0], [2, 0]]), 9)  # one waits; both swap; both come nearer
    assert after.cells.tolist() == [[8, 8], [1, 0], [3, 5]]
    assert rules.met(after).tolist() == [True, False, False]
    assert rules.observe(state, 9).argmax(-1).tolist() == [[8, 1], [1, 8], [4, 5]]


def test_starts_are_drawn_from_the_generator_alone() -> None:
    first, second = (rules.start(1000, 9, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first.cells, second.cells) and not rules.met(first).any()
