"""Layers of many small networks side by side: of every seed, and of every observer where observers do not share.

Planning asks for millions of evaluations, so its networks are two-layer perceptrons, and all copies are evaluated by
one batched product. They read the rows of `game.rows` and the time.

Letters: P copies, N rows of a copy, W row width, X hidden width, M width of a memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from marlab.hunt.game.rows import RowLayout


class BatchedLinear(nn.Module):
    """P linear layers side by side: [P, N, n_in] -> [P, N, n_out]."""

    def __init__(self, n_in: int, n_out: int, generators: Sequence[torch.Generator], gain: float) -> None:
        super().__init__()
        scale = gain / math.sqrt(n_in)
        weights = [torch.empty(n_in, n_out).normal_(0.0, scale, generator=g) for g in generators]
        self.weight = nn.Parameter(torch.stack(weights))
        self.bias = nn.Parameter(torch.zeros(len(weights), 1, n_out))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] == 1:
            return torch.addmm(self.bias[0], x[0], self.weight[0]).unsqueeze(0)
        return torch.baddbmm(self.bias, x, self.weight)


class ObservationLayer(nn.Module):
    """The first layer: rows [P, N, W] and times [P, N] (t / T_max) -> [P, N, X], before its ReLU."""

    def __init__(self, layout: RowLayout, hidden: int, generators: Sequence[torch.Generator]) -> None:
        super().__init__()
        self.rows = BatchedLinear(
            layout.size, hidden, generators, math.sqrt(layout.size / layout.marks)
        )  # rows are sparse
        self.time = nn.Parameter(torch.zeros(len(generators), 1, hidden))

    def forward(self, rows: Tensor, time: Tensor) -> Tensor:
        return self.rows(rows.to(self.time.dtype)).addcmul(time.unsqueeze(-1), self.time)


class Recurrent(nn.Module):
    """P gated recurrent units side by side."""

    def __init__(self, n_in: int, width: int, generators: Sequence[torch.Generator]) -> None:
        super().__init__()
        self.width = width
        self.new = BatchedLinear(n_in, 3 * width, generators, 1.0)
        self.old = BatchedLinear(width, 3 * width, generators, 1.0)

    def step(self, new: Tensor, memory: Tensor) -> Tensor:
        """[P, N, M] memories after one step, from what `self.new` made of its input [P, N, 3 M]."""
        new_reset, new_keep, new_content = new.chunk(3, -1)
        old_reset, old_keep, old_content = self.old(memory).chunk(3, -1)
        content = torch.tanh(new_content + torch.sigmoid(new_reset + old_reset) * old_content)
        return torch.lerp(content, memory, torch.sigmoid(new_keep + old_keep))


def copy_generators(seeds: Sequence[int], per_seed: int, purpose: str) -> list[torch.Generator]:
    """One generator per copy, a seed's own: what other seeds run beside it does not change its start."""
    from marlab.lab.runs.rng import Rngs

    return [Rngs(seed).torch(f"{purpose}/{copy}", "cpu") for seed in seeds for copy in range(per_seed)]


def spread(weights: Tensor, copies: int) -> Tensor:
    """Weights of one copy (or of one per seed) for all `copies`: each is repeated equally often, side by side."""
    return weights.repeat_interleave(copies // len(weights), 0)


def fold(x: Tensor, seeds: int, copies: int) -> Tensor:
    """[P, N, ...] rows of each copy from [B, n, ...]: copies belong to (seed, seat), or to seeds alone."""
    by_group = x.unflatten(0, (seeds, -1)).transpose(1, 2)  # [S, n, E, ...]
    return by_group.reshape(copies, x.shape[0] * x.shape[1] // copies, *x.shape[2:])


def unfold(x: Tensor, seeds: int, players: int) -> Tensor:
    """[B, n, ...] from [P, N, ...], the inverse of `fold`."""
    by_group = x.reshape(seeds, players, -1, *x.shape[2:])
    return by_group.transpose(1, 2).flatten(0, 1)
