"""Codes for what a player is up to: a variational autoencoder of situations, and an encoder of what happened so far.

The autoencoder turns a single situation into a 16-number code. Such a code cannot tell what a player wants beyond
what the situation shows, so the history encoder reads the steps before it as well; while it learns, it is drawn
towards the autoencoder's code of the situation that the player was heading for (a subgoal known in hindsight).

Letters: R rows (one player at one step), H x W cells, C planes, D code width, n players.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss, one_hot
from torch.nn.utils.rnn import PackedSequence

from marlab.hunt.game.rules import ABSENT
from marlab.hunt.others.blocks import Trunk, kaiming_linear
from marlab.hunt.others.config import CODE_WIDTH, ReconLoss
from marlab.hunt.players.rollout import OUTCOMES

HIDDEN = 128
MEMORY = 96
NOW = 32
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


def recon_error(logits: Tensor, planes: Tensor, kind: ReconLoss) -> Tensor:
    """Mean over rows, cells and planes of the reconstruction error of 0/1 planes [*S, H, W, C]."""
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
        return _code(self.head(torch.relu(self.hidden(self.trunk(planes)))))

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


class HistoryEncoder(nn.Module):
    """Code of a player from the steps before now and the situation now.

    A step is what the player saw and what everybody then did, so the code at time t knows the actions up to t - 1.
    """

    def __init__(
        self, shape: tuple[int, int, int], players: int, width: int = CODE_WIDTH,
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.players, self.width = players, width
        self.trunk = Trunk(shape, generator)
        self.memory = nn.GRU(self.trunk.size + players * (ABSENT + 1), MEMORY)
        for weights in self.memory.parameters():
            nn.init.uniform_(weights, -(MEMORY**-0.5), MEMORY**-0.5, generator=generator)
        self.now = kaiming_linear(self.trunk.size, NOW, generator)
        self.head = kaiming_linear(MEMORY + NOW, 2 * width, generator, gain=1.0)
        self.decoder = PlaneDecoder(shape, width + MEMORY, generator)
        self.outcome = kaiming_linear(width, len(OUTCOMES), generator, gain=1.0)

    def begin(self, *lead: int) -> Tensor:
        """[*lead, 96] memory before the first step."""
        return self.now.weight.new_zeros(*lead, MEMORY)

    def code(self, memory: Tensor, planes: Tensor) -> Code:
        """Codes [*S, D] from memories [*S, 96] and situations [*S, H, W, C]."""
        return self._code(memory, self.trunk(planes))

    def advance(self, memory: Tensor, planes: Tensor, actions: Tensor) -> Tensor:
        """Memories [*S, 96] after a step: what was seen [*S, H, W, C] and what all did [*S, n] (ABSENT = 7)."""
        step = self._step(self.trunk(planes), actions)
        after = self.memory(step.view(1, -1, step.shape[-1]), memory.reshape(1, -1, MEMORY).contiguous())[1]
        return after.view(memory.shape)

    def read(self, planes: Tensor, actions: Tensor, order: PackedOrder) -> tuple[Code, Tensor]:
        """Codes [R, D] and memories [R, 96] at every row of whole sequences, both in packed order.

        planes [R, H, W, C] and actions [R, n] come in packed order too (see `packed_order`).
        """
        seen = self.trunk(planes)
        after = self.memory(PackedSequence(self._step(seen, actions), order.sizes))[0].data  # [R, 96]
        # The memory at a row is what its sequence's previous row left; a first row has an empty one.
        before = torch.cat([self.begin(int(order.sizes[0])), after[order.previous]])
        return self._code(before, seen), before

    def decode(self, code: Tensor, memory: Tensor) -> Tensor:
        """Logits of the situation now [*S, H, W, C] from codes and memories."""
        return self.decoder(torch.cat([code, memory], -1))

    def _step(self, seen: Tensor, actions: Tensor) -> Tensor:
        did = one_hot(actions, ABSENT + 1).flatten(-2).to(seen.dtype)
        return torch.cat([seen, did], -1)

    def _code(self, memory: Tensor, seen: Tensor) -> Code:
        return _code(self.head(torch.cat([memory, torch.relu(self.now(seen))], -1)))


def _code(numbers: Tensor) -> Code:
    mean, log_var = numbers.chunk(2, -1)
    return Code(mean, log_var.clamp(*LOG_VAR_RANGE))


# --- sequences ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PackedOrder:
    """Rows of some sequences in the order recurrent networks read them: all first steps, all second steps, ..."""

    rows: Tensor  # [R] int64, on the CPU: which row of the data stands here
    sizes: Tensor  # [T] int64, on the CPU: how many sequences have a step at each time
    previous: Tensor  # [R - sizes[0]] int64: where the row before stands, for all rows after the first steps

    def to(self, device: torch.device | str) -> PackedOrder:
        return PackedOrder(self.rows.to(device), self.sizes, self.previous.to(device))


def packed_order(offsets: Tensor, sequences: Tensor) -> PackedOrder:
    """The packed order of some `sequences` [S] of data whose sequence s owns rows offsets[s] to offsets[s + 1]."""
    lengths = offsets[sequences + 1] - offsets[sequences]
    lengths, order = lengths.sort(descending=True, stable=True)
    first = offsets[sequences[order]]
    time = torch.arange(int(lengths[0])).unsqueeze(1)  # [T, 1]
    there = time < lengths  # [T, S]
    sizes = there.sum(1)
    rows = (first + time)[there]
    start = sizes.cumsum(0) - sizes  # [T] where the steps of each time begin
    when = torch.arange(len(sizes)).repeat_interleave(sizes)
    place = torch.arange(len(rows)) - start[when]
    later = when > 0
    return PackedOrder(rows, sizes, start[when[later] - 1] + place[later])


def subgoal_rows(offsets: Tensor, horizon: int) -> Tensor:
    """[R] the row whose situation is each row's subgoal, known in hindsight.

    It is the situation just before the player's capture if that comes within `horizon` steps, else the one `horizon`
    steps ahead; a sequence's last row is the situation before its capture, so both are one minimum.
    """
    lengths = offsets.diff()
    last = (offsets[1:] - 1).repeat_interleave(lengths)
    return torch.minimum(torch.arange(int(offsets[-1])) + horizon, last)


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
