"""The original's training view: one fish is watched, and all fish obey the one action it gets.

Kept to compare with; the lab's own training gives every fish its own action. `SingleFishView` has the interface of
`FishWorld` with rows [B, 1] instead of [B, F], so that the same trainer drives both.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from marlab.fish.sea.world import FishWorld, Transition

Sampling = Literal["round_robin", "random"]


class SingleFishView:
    """One row per arena over a `FishWorld`: a living fish's observation, a shared action, the mean reward."""

    def __init__(self, world: FishWorld, sampling: Sampling = "round_robin", seed: int = 0) -> None:
        """`random` draws the watched fish at every step, which cannot be captured in a CUDA graph."""
        self.world = world
        self.sampling = sampling
        self.generator = torch.Generator(device=world.device).manual_seed(seed)
        self._pointer = torch.zeros(world.arenas, dtype=torch.int64, device=world.device)
        self.watched = torch.zeros(world.arenas, dtype=torch.int64, device=world.device)  # [B] slot of the fish in view
        self._look()

    def observe(self) -> Tensor:
        """[B, 1, D]: the watched fish's observation, zero when nobody lives."""
        index = self.watched[:, None, None].expand(-1, 1, self.world.cfg.observation_size)
        return self.world.observe().gather(1, index)

    @property
    def acting(self) -> Tensor:
        """[B, 1] bool"""
        return self.world.acting.any(1, keepdim=True)

    def step(self, actions: Tensor) -> Transition:
        """Copy the action [B, 1] to all fish; the reward is the mean over all existing fish, dead ones counting 0."""
        exists, resetting = self.world.state.exists.sum(1), self.world.waiting.clone()
        result = self.world.step(actions.expand(-1, self.world.fish))
        over = self.world.waiting
        # A time limit ends the row as it ends the living fish; with nobody left it is a termination.
        truncated = over & result.truncated.any(1)
        gain = result.reward.sum(1) / exists
        self._pointer.copy_(torch.where(resetting, 0, self._pointer))
        self._look()
        return Transition(gain[:, None], (over & ~truncated)[:, None], truncated[:, None])

    def reset(self) -> None:
        self.world.reset()
        self._pointer.zero_()
        self._look()

    def state_dict(self) -> dict[str, Any]:
        return {
            "world": self.world.state_dict(), "pointer": self._pointer.clone(), "watched": self.watched.clone(),
            "generator": self.generator.get_state(),
        }  # fmt: skip

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.world.load_state_dict(saved["world"])
        self._pointer.copy_(saved["pointer"])
        self.watched.copy_(saved["watched"])
        self.generator.set_state(saved["generator"].cpu())

    def _look(self) -> None:
        """Choose the next fish to watch: the pointer-th living one, or any living one."""
        alive = self.world.state.alive
        number = alive.sum(1).clamp(min=1)
        if self.sampling == "round_robin":
            k = self._pointer % number
            self._pointer.copy_((k + 1) % number)
        else:
            draw = torch.rand(len(number), generator=self.generator, device=number.device)
            k = (draw * number).to(torch.int64).clamp(max=self.world.fish - 1)
        rank = alive.cumsum(1) - 1  # [B, F] place among the living
        self.watched.copy_((alive & (rank == k[:, None])).to(torch.uint8).argmax(1))
