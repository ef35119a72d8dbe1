"""Games given as tables, for the tests of the search: every state and action leads to one state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from marlab.lab.search.native import native_library
from marlab.lab.search.search import Embedding, Evaluation, Transition

needs_compiler = pytest.mark.skipif(native_library(torch.float32, 2) is None, reason="no C compiler")
ENGINES = ["tensors", pytest.param("native", marks=needs_compiler)]


@dataclass(frozen=True)
class TableGame:
    """X states, A actions; the embedding of a state is its number."""

    next: Tensor
    """[X, A] the state that follows."""
    reward: Tensor
    """[X, A]"""
    discount: Tensor
    """[X, A] 0 where the game ends."""
    logits: Tensor
    """[X, A]"""
    value: Tensor
    """[X]"""
    legal: Tensor
    """[X, A] bool"""

    def evaluate(self, state: Tensor) -> Evaluation:
        return Evaluation(self.logits[state], self.value[state], self.legal[state])

    def expand(self, embedding: Embedding, action: Tensor) -> Transition:
        state = embedding[0]
        after = self.next[state, action]
        return Transition(self.reward[state, action], self.discount[state, action], self.evaluate(after), (after,))

    def solve(self, sweeps: int = 500) -> Tensor:
        """[X, A] exact action values of best play, by value iteration."""
        q = torch.zeros_like(self.reward)
        for _ in range(sweeps):
            best = q.masked_fill(~self.legal, -torch.inf).amax(1)
            q = self.reward + self.discount * torch.where(self.discount == 0, 0.0, best[self.next])
        return q


def random_game(
    seed: int, states: int = 40, actions: int = 5, ends: float = 0.15, legal_share: float = 0.7
) -> TableGame:
    g = torch.Generator().manual_seed(seed)
    shape = (states, actions)
    legal = torch.rand(shape, generator=g) < legal_share
    legal[torch.arange(states), torch.randint(actions, (states,), generator=g)] = True
    return TableGame(
        next=torch.randint(states, shape, generator=g),
        reward=torch.randn(shape, generator=g) * (torch.rand(shape, generator=g) < 0.3),
        discount=0.95 * (torch.rand(shape, generator=g) >= ends),
        logits=torch.randn(shape, generator=g),
        value=torch.randn(states, generator=g),
        legal=legal,
    )


def layered_game(seed: int, layers: int = 4, width: int = 10, actions: int = 4) -> TableGame:
    """A random game of `layers` steps, every state in its layer, with values that know nothing."""
    game = random_game(seed, layers * width, actions, ends=0.0)
    layer = torch.arange(layers * width) // width
    into = game.next % width + (layer[:, None] + 1).clamp_max(layers - 1) * width
    last = (layer == layers - 1)[:, None]
    return replace(
        game,
        next=into,
        discount=game.discount.masked_fill(last, 0.0),
        value=torch.zeros_like(game.value),
        logits=torch.zeros_like(game.logits),
    )
