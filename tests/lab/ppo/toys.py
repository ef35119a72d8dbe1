"""Tiny worlds with known optima, in the batched next-step-reset contract of `marlab.lab.ppo.ppo`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marlab.lab.ppo.ppo import View


class Result(NamedTuple):
    reward: Tensor
    terminated: Tensor
    truncated: Tensor


class Bandit:
    """One-step episodes: arm k pays k / (arms - 1). Odd steps are the resets that the contract asks for."""

    def __init__(self, rows: int, arms: int, forbidden: tuple[int, ...] = ()) -> None:
        self.arms, self.waiting = arms, torch.zeros(rows, 1, dtype=torch.bool)
        self.mask = torch.ones(rows, 1, arms, dtype=torch.bool)
        self.mask[..., list(forbidden)] = False
        self.taken = torch.zeros(arms, dtype=torch.int64)

    @property
    def acting(self) -> Tensor:
        return ~self.waiting

    def observe(self) -> View:
        return View(torch.ones(*self.waiting.shape, 1), self.mask)

    def step(self, actions: Tensor) -> Result:
        acting = self.acting
        self.taken += torch.bincount(actions[acting], minlength=self.arms)
        reward = actions / (self.arms - 1.0) * acting
        self.waiting = acting.clone()
        return Result(reward, acting, torch.zeros_like(acting))


class Identity:
    """Two heads must repeat the two digits they see. Episodes of `length` steps are truncated, never terminated.

    The second agent of every arena leaves half-way through each episode, so that there are dead rows.
    """

    def __init__(self, arenas: int, choices: tuple[int, int], length: int, generator: torch.Generator) -> None:
        self.arenas, self.choices, self.length, self.generator = arenas, choices, length, generator
        self.t = torch.zeros(arenas, dtype=torch.int64)
        self._draw()

    def _draw(self) -> None:
        digits = [torch.randint(c, (self.arenas, 2), generator=self.generator) for c in self.choices]
        self.digits = torch.stack(digits, -1)  # [B, A, 2]

    @property
    def acting(self) -> Tensor:
        running = (self.t < self.length)[:, None].expand(-1, 2).clone()
        running[:, 1] &= self.t < self.length // 2
        return running

    def observe(self) -> View:
        shown = [torch.nn.functional.one_hot(self.digits[..., i], c) for i, c in enumerate(self.choices)]
        return View(torch.cat(shown, -1).float())

    def step(self, actions: Tensor) -> Result:
        acting = self.acting
        reward = (actions == self.digits).float().mean(-1) * acting
        self.t = torch.where(self.t >= self.length, 0, self.t + 1)
        leaves = torch.zeros_like(acting)
        leaves[:, 1] = acting[:, 1] & (self.t == self.length // 2)
        self._draw()
        truncated = acting & ~leaves & (self.t == self.length)[:, None]
        return Result(reward, leaves, truncated)

    def state_dict(self) -> dict[str, Tensor]:
        return {"t": self.t, "digits": self.digits, "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.t, self.digits = state["t"], state["digits"]
        self.generator.set_state(state["generator"])
