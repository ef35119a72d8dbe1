"""Network pieces that the models of this game share: a convolutional trunk, its join with time and goal, stacks.

Planes come as the game draws them, [*S, height, width, channels] of any number type; *S stands for any leading
dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.functional import linear

TRUNK_WIDTHS = (16, 32, 32)
JOIN_WIDTH = 512


def kaiming_linear(n_in: int, n_out: int, generator: torch.Generator | None, gain: float = math.sqrt(2.0)) -> nn.Linear:
    """A linear layer with normal weights of deviation gain / sqrt(n_in) and zero bias."""
    layer = nn.Linear(n_in, n_out)
    nn.init.normal_(layer.weight, 0.0, gain / math.sqrt(n_in), generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def kaiming_conv(n_in: int, n_out: int, generator: torch.Generator | None) -> nn.Conv2d:
    """A 3x3 convolution that keeps the grid's size, with Kaiming normal weights and zero bias."""
    layer = nn.Conv2d(n_in, n_out, 3, padding=1)
    nn.init.normal_(layer.weight, 0.0, math.sqrt(2.0 / (9 * n_in)), generator=generator)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


def planes_first(planes: Tensor) -> Tensor:
    """[*S, H, W, C] of any type -> [N, C, H, W] float32, as convolutions want it (without moving memory)."""
    return planes.flatten(0, -4).float().permute(0, 3, 1, 2)


class Trunk(nn.Module):
    """Three 3x3 convolutions over the planes: [*S, H, W, C] -> [*S, size]."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        generator: torch.Generator | None = None,
        widths: tuple[int, ...] = TRUNK_WIDTHS,
    ) -> None:
        """`shape` is the game's observation shape (height, width, channels)."""
        super().__init__()
        height, width, channels = shape
        self.shape, self.size = shape, widths[-1] * height * width
        sizes = (channels, *widths)
        self.layers = nn.Sequential()
        for n_in, n_out in zip(sizes[:-1], widths):
            self.layers.extend([kaiming_conv(n_in, n_out, generator), nn.ReLU()])

    def forward(self, planes: Tensor) -> Tensor:
        features = self.layers(planes_first(planes))  # [N, width, H, W]
        return features.permute(0, 2, 3, 1).reshape(*planes.shape[:-3], self.size)


class Body(nn.Module):
    """Trunk joined with the time and a goal: [*S, H, W, C], [*S], [*S, goal_width] -> [*S, 512]."""

    def __init__(
        self, shape: tuple[int, int, int], goal_width: int = 0, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.goal_width = goal_width
        self.trunk = Trunk(shape, generator)
        # One linear layer over all inputs, kept as two so that many goals can be tried on one state.
        width = self.trunk.size + 1 + goal_width
        scale = math.sqrt(2.0 / width)
        self.join = kaiming_linear(self.trunk.size + 1, JOIN_WIDTH, generator, scale * math.sqrt(self.trunk.size + 1))
        weights = torch.empty(JOIN_WIDTH, goal_width).normal_(0.0, scale, generator=generator)
        self.goal_join = nn.Parameter(weights) if goal_width else None

    def forward(self, planes: Tensor, time: Tensor, goal: Tensor | None = None) -> Tensor:
        """`time` is t / T_max; `goal` must be given exactly when the body has a goal."""
        return self.with_goal(self.without_goal(planes, time), goal)

    def without_goal(self, planes: Tensor, time: Tensor) -> Tensor:
        """[*S, 512] what the state alone adds to the join, before its ReLU."""
        return self.join(torch.cat([self.trunk(planes), time.unsqueeze(-1)], -1))

    def with_goal(self, state: Tensor, goal: Tensor | None) -> Tensor:
        """[*S, 512] the join of what `without_goal` gave with goals [*S, goal_width]."""
        if (0 if goal is None else goal.shape[-1]) != self.goal_width:
            raise ValueError(f"the goal has width {None if goal is None else goal.shape[-1]}, not {self.goal_width}")
        if goal is None or self.goal_join is None:
            return torch.relu(state)
        return torch.relu(state + linear(goal, self.goal_join))


class Stack(nn.Module):
    """P networks of one kind with separate weights, evaluated together: inputs and outputs lead with [P, ...].

    Its parameters are those of a single network with a leading axis P, so one optimiser step trains all of them.
    """

    def __init__(self, make: Callable[[], nn.Module], copies: int) -> None:
        """`make` builds one freshly initialised network; it is called once per copy."""
        super().__init__()
        made = [make() for _ in range(copies)]
        # Kept out of the module tree: it only lends its forward pass, the weights are the stacked ones.
        self._template = [made[0]]
        self.copies = copies
        self.weights = nn.ParameterDict()
        for name, _ in made[0].named_parameters():
            stacked = torch.stack([net.get_parameter(name).detach() for net in made])
            self.weights[name.replace(".", "/")] = nn.Parameter(stacked)

    def forward(self, *inputs: Tensor) -> Any:
        """Call copy p on the p-th entry of every input; outputs (tensors or tuples of them) lead with [P]."""
        named = {name.replace("/", "."): value for name, value in self.weights.items()}
        if self.copies == 1:  # the plain network, without the cost of batching over copies
            single = {name: value.squeeze(0) for name, value in named.items()}
            features = self._call(single, *(x.squeeze(0) for x in inputs))
            return tuple(x.unsqueeze(0) for x in features) if isinstance(features, tuple) else features.unsqueeze(0)
        return vmap(self._call)(named, *inputs)

    def _call(self, weights: dict[str, Tensor], *inputs: Tensor) -> Any:
        return functional_call(self._template[0], weights, inputs)
