"""Codes of situations: a variational autoencoder.

The autoencoder turns a single situation into a 16-number code. Such a code cannot tell what a player wants beyond
what the situation shows, so the history encoder (`history`) reads the steps before it as well; while it learns, it
foretells the autoencoder's code of the situation that the player was heading for (a subgoal known in hindsight).

Letters: R rows (one player at one step), H x W cells, C planes, D code width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from marlab.hunt.others.blocks import Trunk, kaiming_linear
from marlab.hunt.others.config import CODE_WIDTH, ReconLoss

HIDDEN = 128
LOG_VAR_RANGE = (-8.0, 4.0)
ACTIVE_VARIANCE = 0.01
"""A code dimension is in use when its mean varies by more than this from row to row."""


class Code(NamedTuple):
    """A normal distribution over codes."""

    mean: Tensor  # [*S, D]
    log_var: Tensor  # [*S, D]

    def sample(self, generator: torch.Generator | None) -> Tensor:
        """[*S, D] a draw that gradients pass through."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return self.mean + (0.5 * self.log_var).exp() * noise

    def kl_to_standard(self) -> Tensor:
        """[*S, D] divergence from the standard normal distribution, per dimension, in nats."""
        return -0.5 * (1 + self.log_var - self.mean**2 - self.log_var.exp())

    def kl_to(self, other: Code) -> Tensor:
        """[*S, D] divergence from another code, per dimension, in nats."""
        gap = (self.mean - other.mean) ** 2
        ratio = self.log_var - other.log_var
        return 0.5 * (ratio.exp() + gap * (-other.log_var).exp() - 1 - ratio)


def kl_factor(step: int, largest: float, tau: float) -> float:
    """Weight of the KL term after `step` optimiser steps: rises from 0 to `largest` with time constant `tau`."""
    return largest * (1.0 - math.exp(-step / tau))


def recon_error(logits: Tensor, planes: Tensor, kind: ReconLoss, leave_out: int | None = None) -> Tensor:
    """Mean over rows, cells and planes of the reconstruction error of 0/1 planes [*S, H, W, C].

    leave_out: the plane that is not rebuilt: the map, which stays as it is and which everybody sees. Codes that had to
    show it would hold obstacles and no player.
    """
    if leave_out is not None:
        logits, planes = (torch.cat([x[..., :leave_out], x[..., leave_out + 1 :]], -1) for x in (logits, planes))
    if kind == "mse":
        return mse_loss(torch.sigmoid(logits), planes.float())
    return binary_cross_entropy_with_logits(logits, planes.float())


class GoalVAE(nn.Module):
    """Autoencoder of single situations."""

    def __init__(
        self, shape: tuple[int, int, int], width: int = CODE_WIDTH, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.shape, self.width = shape, width
        self.trunk = Trunk(shape, generator)
        self.hidden = kaiming_linear(self.trunk.size, HIDDEN, generator)
        self.head = kaiming_linear(HIDDEN, 2 * width, generator, gain=1.0)
        self.decoder = PlaneDecoder(shape, width, generator)

    def encode(self, planes: Tensor) -> Code:
        """[*S, H, W, C] -> codes [*S, D]."""
        return code_of(self.head(torch.relu(self.hidden(self.trunk(planes)))))

    def decode(self, code: Tensor) -> Tensor:
        """[*S, D] -> logits of planes [*S, H, W, C]."""
        return self.decoder(code)


class PlaneDecoder(nn.Module):
    """[*S, n_in] -> logits of planes [*S, H, W, C]."""

    def __init__(self, shape: tuple[int, int, int], n_in: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.shape = shape
        self.hidden = kaiming_linear(n_in, HIDDEN, generator)
        self.out = kaiming_linear(HIDDEN, math.prod(shape), generator, gain=1.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.hidden(x))).view(*x.shape[:-1], *self.shape)


def code_of(numbers: Tensor) -> Code:
    """The code that numbers [*S, 2 D] stand for."""
    mean, log_var = numbers.chunk(2, -1)
    return Code(mean, log_var.clamp(*LOG_VAR_RANGE))


# --- how good a code is -------------------------------------------------------------------------------------------


def active_units(mean: Tensor) -> int:
    """How many dimensions of the code means [R, D] vary from row to row."""
    return int((mean.var(0) > ACTIVE_VARIANCE).sum()) if mean.shape[0] > 1 else 0


def occupied_recall(logits: Tensor, planes: Tensor) -> Tensor:
    """[C] share of the occupied cells of each plane that a reconstruction shows (NaN for planes without any).

    The mean error of sparse planes is small even when every player is lost; this is not.
    """
    shown = ((logits > 0) & planes.bool()).flatten(0, -2).sum(0)
    there = planes.bool().flatten(0, -2).sum(0)
    return shown / there.to(torch.float32).masked_fill(there == 0, float("nan"))
