"""Small networks that every world uses, initialised from explicit generators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from marlab.lab.ppo.config import Activation

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU}


def orthogonal_linear(n_in: int, n_out: int, gain: float, generator: torch.Generator | None) -> nn.Linear:
    """A linear layer with orthogonal weights and zero bias."""
    layer = nn.Linear(n_in, n_out)
    nn.init.orthogonal_(layer.weight, gain, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def mlp(
    n_in: int, hidden: Sequence[int], n_out: int, out_gain: float, activation: Activation = "tanh",
    generator: torch.Generator | None = None,
) -> nn.Sequential:  # fmt: skip
    """[*, n_in] -> [*, n_out] through hidden layers with orthogonal weights of gain sqrt(2)."""
    layers: list[nn.Module] = []
    sizes = [n_in, *hidden]
    for a, b in itertools.pairwise(sizes):
        layers += [orthogonal_linear(a, b, math.sqrt(2.0), generator), ACTIVATIONS[activation]()]
    layers.append(orthogonal_linear(sizes[-1], n_out, out_gain, generator))
    return nn.Sequential(*layers)


class ActorCritic(nn.Module):
    """Separate policy and value networks.

    heads: number of choices of each action head; the policy gives all their logits side by side.
    critic_size: width of the critic's own input where it sees more than the actor (centralised critic).
    """

    def __init__(
        self, obs_size: int, heads: Sequence[int], hidden: Sequence[int] = (64, 64), critic_size: int | None = None,
        activation: Activation = "tanh", generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.heads = tuple(heads)
        self.policy = mlp(obs_size, hidden, sum(self.heads), 0.01, activation, generator)
        self.critic = mlp(critic_size or obs_size, hidden, 1, 1.0, activation, generator)

    def logits(self, obs: Tensor) -> Tensor:
        """[*S, obs_size] -> [*S, sum(heads)]"""
        return self.policy(obs)

    def value(self, obs: Tensor) -> Tensor:
        """[*S, obs_size or critic_size] -> [*S]"""
        return self.critic(obs).squeeze(-1)
