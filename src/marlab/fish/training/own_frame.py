"""A shoal's network that sees the tank from the fish (`policy_frame=own`): its own heading is always ahead.

Where nothing in the tank has a fixed direction, a policy need not learn the same thing for every heading and for both
sides. So all vectors of an observation are turned until the fish swims along +x, and mirrored until the predator (or,
out of sight, the tank's centre) is on its left; the logits of left and right are exchanged back. Two numbers are added:
where the fish is as the predator sees it, ahead and aside. It sees nothing that `sea/perception.py` does not give it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import OWN_INPUTS
from marlab.lab.ppo.config import Activation
from marlab.lab.ppo.nets import ActorCritic

SUMMARY_INPUTS = OWN_INPUTS + 7
FEATURES = {OWN_INPUTS: 12, SUMMARY_INPUTS: 19}
"""Inputs that a fish has -> features that its network reads."""
TINY = 1e-6


def own_frame(obs: Tensor) -> tuple[Tensor, Tensor]:
    """Observations [*, 11 or 18] -> features [*, 12 or 19], and whether each was mirrored [*]."""
    vx, vy = obs[..., 2], obs[..., 3]
    speed = torch.hypot(vx, vy)
    moving = speed * sea.FISH_MAX_SPEED > sea.REST_SPEED
    hx = torch.where(moving, vx / speed.clamp(min=TINY), 1.0)
    hy = torch.where(moving, vy / speed.clamp(min=TINY), 0.0)

    def turned(first: int) -> tuple[Tensor, Tensor]:
        x, y = obs[..., first], obs[..., first + 1]
        return x * hx + y * hy, y * hx - x * hy

    (out, out_left), (away, away_left), (swims, swims_left) = turned(0), turned(6), turned(8)
    mirrored = torch.where(obs[..., 5] > 0, away_left, -out_left) < 0
    side = 1.0 - 2.0 * mirrored.to(obs.dtype)
    pace = torch.hypot(swims, swims_left).clamp(min=TINY)
    ahead = -(away * swims + away_left * swims_left) / pace  # the fish as the predator sees it
    aside = (away * swims_left - away_left * swims) / pace
    features = [
        out, side * out_left, speed, obs[..., 4], obs[..., 5], away, side * away_left, swims, side * swims_left,
        obs[..., 10], ahead, side * aside,
    ]  # fmt: skip
    if obs.shape[-1] == SUMMARY_INPUTS:
        near, near_left = turned(12)
        features += [obs[..., 11], near, side * near_left, *(obs[..., i] for i in range(14, 18))]
    return torch.stack(features, -1), mirrored


class OwnFrameActorCritic(ActorCritic):
    """Policy and value network behind `own_frame`."""

    def __init__(
        self, obs_size: int, heads: Sequence[int], hidden: Sequence[int], activation: Activation,
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__(FEATURES[obs_size], heads, hidden, activation=activation, generator=generator)

    def logits(self, obs: Tensor) -> Tensor:
        features, mirrored = own_frame(obs)
        forward, left, right, brake, hold = self.policy(features).unbind(-1)
        left, right = torch.where(mirrored, right, left), torch.where(mirrored, left, right)
        return torch.stack((forward, left, right, brake, hold), -1)

    def value(self, obs: Tensor) -> Tensor:
        return self.critic(own_frame(obs)[0]).squeeze(-1)
