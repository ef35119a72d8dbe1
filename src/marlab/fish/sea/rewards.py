"""What each step is worth to a fish, term by term, so that every term's share can be reported."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.perception import Neighbours, Sight, sight, wall_distance

SCALE = 0.1
LIFE = 2.0
DEATH = -50.0
"""Paid once, at the step of death, and not scaled."""
VISION_TOP = 10.0
OUTSIDE_VISION = {"continuous": VISION_TOP, "cliff": 5.0}
WALL_MARGIN = 1.0
WALL_SLOPE = 2.0


class Crowding(NamedTuple):
    """The density penalty's two dials; tensors, so that a trainer turns them without new code paths."""

    coef: Tensor  # scalar
    target: Tensor  # scalar


class RewardTerms(NamedTuple):
    """Scaled parts of the reward, each [B, F]; their sum is the reward."""

    life: Tensor
    predator: Tensor
    wall: Tensor
    density: Tensor
    divergence: Tensor
    death: Tensor

    def total(self) -> Tensor:
        return self.life + self.predator + self.wall + self.density + self.divergence + self.death


def crowding(cfg: SeaConfig, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> Crowding:
    return Crowding(
        torch.tensor(cfg.density_penalty_coef, device=device, dtype=dtype),
        torch.tensor(cfg.density_target, device=device, dtype=dtype),
    )


def reward(
    state: SeaState, was_alive: Tensor, cfg: SeaConfig, social: Neighbours | None = None, seen: Sight | None = None,
    crowd: Crowding | None = None,
) -> RewardTerms:  # fmt: skip
    """Rewards for arriving in `state` when `was_alive` [B, F] held before the step.

    Living fish get the shaped terms, those that died in this step the death penalty, the others nothing. Without
    `social` the density and divergence terms are zero: give it whenever their weights are not.
    """
    seen = sight(state, cfg.vision_radius) if seen is None else seen
    living = state.alive.to(state.x.dtype) * SCALE
    inside = seen.distance * (VISION_TOP / cfg.vision_radius)
    near_wall = (WALL_MARGIN - wall_distance(state)).clamp(min=0.0)
    zero = torch.zeros_like(living)
    density = divergence = zero
    if social is not None:
        crowd = crowding(cfg, state.x.device, state.x.dtype) if crowd is None else crowd
        excess = (social.number * (1 / cfg.neighbor_average_count) - crowd.target).clamp(min=0.0)
        density = -crowd.coef * excess * living
        divergence = social.divergence * living * (cfg.divergence_reward_coef / sea.FISH_MAX_SPEED)
    return RewardTerms(
        life=LIFE * living,
        predator=torch.where(seen.visible, inside, OUTSIDE_VISION[cfg.vision_reward or "continuous"]) * living,
        wall=-WALL_SLOPE * near_wall * living, density=density, divergence=divergence,
        death=torch.where(was_alive & ~state.alive, DEATH, zero),
    )  # fmt: skip
