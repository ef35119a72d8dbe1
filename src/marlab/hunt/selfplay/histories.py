"""Whole histories of players, for the encoder to go on learning from: the newest of every seed.

Letters: S seeds, C histories of a seed, T steps, W row width, n players, K goals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class History(NamedTuple):
    """What a player saw and what all did, from its first step on; *S stands for any leading dimensions."""

    rows: Tensor  # [*S, T, W] uint8
    actions: Tensor  # [*S, T, n] int64, of all players, itself first (ABSENT = 7)
    real: Tensor  # [*S, T] bool: steps that it took
    goal: Tensor  # [*S, K] float32: what was believed of its goal in the end, by the player before it
    outcome: Tensor  # [*S] int64: what it left with

    def select(self, index: Any) -> History:
        return History(*(field[index] for field in self))


class Histories:
    """A ring of the newest histories of every seed."""

    def __init__(self, seeds: int, capacity: int, like: History) -> None:
        """`like` gives shapes and types of one history's fields."""
        self.capacity = capacity
        self.store = History(*(torch.zeros(seeds, capacity, *x.shape, dtype=x.dtype, device=x.device) for x in like))
        self.written = torch.zeros(seeds, dtype=torch.int64, device=like.real.device)

    def add(self, seed: Tensor, new: History) -> None:
        """Take over histories [N] of seeds [N]."""
        order = seed.argsort(stable=True)
        seed = seed[order]
        counts = torch.bincount(seed, minlength=len(self.written))
        rank = torch.arange(len(seed), device=seed.device) - (counts.cumsum(0) - counts)[seed]
        fits = (rank >= counts[seed] - self.capacity).nonzero().squeeze(1)
        place = (self.written[seed] + rank)[fits] % self.capacity
        for kept, x in zip(self.store, new):
            kept[seed[fits], place] = x[order][fits].to(kept.dtype)
        self.written += counts

    def draw(self, lead: tuple[int, ...], generator: torch.Generator) -> History:
        """Random histories [S, *lead] of every seed; all must have some."""
        seeds = len(self.written)
        uniform = torch.rand(seeds, *lead, generator=generator, device=self.written.device)
        wide = self.written.clamp_max(self.capacity).view(seeds, *[1] * len(lead))
        place = (uniform * wide).long()
        which = torch.arange(seeds, device=place.device).view(seeds, *[1] * len(lead)).expand_as(place)
        return self.store.select((which, place))

    def state_dict(self) -> dict[str, Any]:
        return {"store": self.store._asdict(), "written": self.written}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for kept, saved in zip(self.store, state["store"].values()):
            kept.copy_(saved)
        self.written.copy_(state["written"])
