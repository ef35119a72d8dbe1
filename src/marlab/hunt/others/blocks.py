"""Network pieces that the models of this game share: a convolutional trunk, and its join with time and goal.

Planes come as the game draws them, [*S, height, width, channels] of any number type; *S stands for any leading
dimensions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
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
