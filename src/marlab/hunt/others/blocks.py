"""Network pieces that the models of this game share: a convolutional trunk and its layers.

Planes come as the game draws them, [*S, height, width, channels] of any number type; *S stands for any leading
dimensions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

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
