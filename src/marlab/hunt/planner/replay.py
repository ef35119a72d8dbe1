"""What was experienced: complete episodes with their value labels, kept in one ring per player, and offline rows.

Letters: S seeds, n players, G = S n rings (ring s n + i holds what player i of seed s did), C rows of a ring, N rows,
W row width, A actions, S' = n - 1 observers of a player, K goals, D code width, T steps.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor


class Experience(NamedTuple):
    """Steps of players; *S stands for any leading dimensions."""

    rows: Tensor  # [*S, W] uint8: what the player saw
    time: Tensor  # [*S] float32, t / T_max
    action: Tensor  # [*S] int64: what it did
    policy: Tensor  # [*S, A] float32: what it planned
    value: Tensor  # [*S] float32: its value label, in scaled reward units
    goal: Tensor  # [*S, S', K] float32: final belief about its goal; entry k is by the player who sees it in slot k
    believed: Tensor  # [*S, 2, S', K] float32: its belief about the others' goals, at the step and in the end
    code: Tensor  # [*S, 2, D] float32: mean and log-variance of its code, by its history then (D = 0 without codes)
    update: Tensor  # [*S] int64: policy updates when it was played; -1 for offline rows

    def select(self, index: Any) -> Experience:
        return Experience(*(field[index] for field in self))


class History(NamedTuple):
    """What a player saw and what all did, from its first step on; *S stands for any leading dimensions."""

    rows: Tensor  # [*S, T, W] uint8
    actions: Tensor  # [*S, T, n] int64, of all players, itself first (ABSENT = 7)
    real: Tensor  # [*S, T] bool: steps that it took
    goal: Tensor  # [*S, K] float32: what was believed of its goal in the end, by the player before it
    outcome: Tensor  # [*S] int64: what it left with

    def select(self, index: Any) -> History:
        return History(*(field[index] for field in self))


Kept = TypeVar("Kept", Experience, History)


class Replay(Generic[Kept]):
    """Rings of the newest steps of every player, or of whole histories of every seed. Nothing waits for the device."""

    def __init__(self, groups: int, capacity: int, like: Kept) -> None:
        """`like` gives shapes and types of one entry's fields."""
        self.groups, self.capacity = groups, capacity
        empty = (torch.zeros(groups, capacity, *x.shape, dtype=x.dtype, device=x.device) for x in like)
        self.store: Kept = type(like)(*empty)
        self.written = torch.zeros(groups, dtype=torch.int64, device=like.rows.device)

    def add(self, group: Tensor, steps: Kept) -> None:
        """Take over steps [N] of players `group` [N] (numbers of rings), oldest first."""
        order = group.argsort(stable=True)
        group = group[order]
        counts = torch.bincount(group, minlength=self.groups)
        rank = torch.arange(len(group), device=group.device) - (counts.cumsum(0) - counts)[group]
        # Of more rows than a ring holds only the last may be written, or two would claim one place.
        fits = (rank >= counts[group] - self.capacity).nonzero().squeeze(1)
        place = (self.written[group] + rank)[fits] % self.capacity
        for kept, new in zip(self.store, steps):
            kept[group[fits], place] = new[order][fits].to(kept.dtype)
        self.written += counts

    @property
    def sizes(self) -> Tensor:
        """[G] rows in each ring."""
        return self.written.clamp_max(self.capacity)

    def draw(self, rings: Tensor, generator: torch.Generator, newest: int | None = None) -> Kept:
        """A random entry (of the `newest` ones) of each of `rings` [*S]; all of them must have some."""
        uniform = torch.rand(rings.shape, generator=generator, device=rings.device)
        if newest is None:
            return self.store.select((rings, (uniform * self.sizes[rings]).long()))
        age = (uniform * self.sizes[rings].clamp_max(newest)).long()
        return self.store.select((rings, (self.written[rings] - 1 - age) % self.capacity))

    def state_dict(self) -> dict[str, Any]:
        """Without the places that no step was written to yet."""
        filled = min(int(self.written.max()), self.capacity)
        rows = {name: x[:, :filled].contiguous() for name, x in self.store._asdict().items()}
        return {"store": rows, "written": self.written}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for kept, (_, saved) in zip(self.store, state["store"].items()):
            kept[:, : saved.shape[1]].copy_(saved)
        self.written.copy_(state["written"])


def value_labels(reward: Tensor, gamma: float) -> Tensor:
    """[..., T] discounted sums of a player's own rewards [..., T] from each step of a complete episode on.

    With one reward R at its last step T_i - 1 that is gamma ** (T_i - 1 - t) R.
    """
    labels = torch.empty_like(reward)
    after = torch.zeros_like(reward[..., 0])
    for t in range(reward.shape[-1] - 1, -1, -1):
        after = reward[..., t] + gamma * after
        labels[..., t] = after
    return labels


class RankedRewards:
    """r2: a final reward becomes +1 or -1 by how it ranks among recent ones; one buffer per seed.

    Off by default in training: it erases how much better a shared stag is than a hare.
    """

    def __init__(self, first: Tensor, size: int = 1000, percentile: float = 75.0) -> None:
        """first: [S, F] rewards of random play that fill the buffers at the start."""
        self.size, self.percentile = size, percentile
        self.buffers = [row[-size:].clone() for row in first]
        self.level = torch.empty(len(first), device=first.device)  # [S] the percentile of each buffer
        self.top = torch.empty_like(self.level)  # [S] its highest reward
        for seed in range(len(first)):
            self._renew(seed)

    def rank(self, reward: Tensor, seed: Tensor, generator: torch.Generator) -> Tensor:
        """[N] +1 above the percentile of the reward's seed [N], -1 below; at it +1 if also the highest, else a coin."""
        level, top = self.level[seed], self.top[seed]
        coin = torch.where(torch.rand(reward.shape, generator=generator, device=reward.device) < 0.5, 1.0, -1.0)
        tie = torch.where(reward == top, 1.0, coin)
        return torch.where(reward > level, 1.0, torch.where(reward < level, -1.0, tie))

    def add(self, reward: Tensor, seed: Tensor) -> None:
        """Remember final rewards [N] of seeds [N]."""
        for s in range(len(self.buffers)):
            mine = reward[seed == s]
            if len(mine):
                self.buffers[s] = torch.cat([self.buffers[s], mine])[-self.size :]
                self._renew(s)

    def _renew(self, seed: int) -> None:
        self.level[seed] = torch.quantile(self.buffers[seed], self.percentile / 100.0)
        self.top[seed] = self.buffers[seed].max()

    def state_dict(self) -> dict[str, Any]:
        return {"buffers": self.buffers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.buffers = [saved.to(self.level.device) for saved in state["buffers"]]
        for seed in range(len(self.buffers)):
            self._renew(seed)
