"""A shoal's network that attends to its neighbours one by one (`neighbor_view=nearest`).

What a fish knows of itself and the predator asks, its neighbours answer: their values are mixed by how well they fit
the question, so neither their number nor their order matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from marlab.fish.sea.config import NEIGHBOUR_INPUTS, OWN_INPUTS
from marlab.lab.ppo.config import Activation
from marlab.lab.ppo.nets import ActorCritic, mlp, orthogonal_linear

WIDTH = 32
NOBODY = -1e9
"""Score of a place where there is no neighbour."""


class Attending(nn.Module):
    """[*, own + 5 K] -> [*, n_out]"""

    def __init__(
        self, hidden: Sequence[int], n_out: int, out_gain: float, activation: Activation,
        generator: torch.Generator | None, own: int = OWN_INPUTS,
    ) -> None:  # fmt: skip
        super().__init__()
        self.own = own
        self.ask = orthogonal_linear(own, WIDTH, 1.0, generator)
        self.key = orthogonal_linear(NEIGHBOUR_INPUTS, WIDTH, 1.0, generator)
        self.value = orthogonal_linear(NEIGHBOUR_INPUTS, WIDTH, 1.0, generator)
        self.head = mlp(own + WIDTH, hidden, n_out, out_gain, activation, generator)

    def forward(self, obs: Tensor) -> Tensor:
        own, others = obs[..., : self.own], obs[..., self.own :].unflatten(-1, (-1, NEIGHBOUR_INPUTS))
        there = others[..., -1] > 0  # [*, K]
        score = (self.key(others) * self.ask(own)[..., None, :]).sum(-1) / math.sqrt(WIDTH)
        weight = torch.where(there, score, NOBODY).softmax(-1) * there  # zero for a lonely fish
        mixed = (weight[..., None] * self.value(others)).sum(-2)
        return self.head(torch.cat((own, mixed), -1))


class AttendingActorCritic(ActorCritic):
    """Policy and value network that attend, each with an attention of its own."""

    def __init__(
        self, heads: Sequence[int], hidden: Sequence[int], activation: Activation, generator: torch.Generator | None
    ) -> None:
        nn.Module.__init__(self)
        self.heads = tuple(heads)
        self.policy = Attending(hidden, sum(self.heads), 0.01, activation, generator)  # type: ignore[assignment]
        self.critic = Attending(hidden, 1, 1.0, activation, generator)  # type: ignore[assignment]
