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
from marlab.fish.sea.config import NEIGHBOUR_INPUTS, OWN_INPUTS, RAYS
from marlab.fish.training.attention import Attending
from marlab.lab.ppo.config import Activation
from marlab.lab.ppo.nets import ActorCritic

SUMMARY_INPUTS, RAY_INPUTS = OWN_INPUTS + 7, OWN_INPUTS + 3 * RAYS
OWN_FEATURES = OWN_INPUTS + 1
"""One velocity becomes a speed, two places are added; what is seen of the neighbours keeps its size."""
TINY = 1e-6


def own_frame(obs: Tensor) -> tuple[Tensor, Tensor]:
    """Observations [*, 11 or more] -> features [*, one more], and whether each was mirrored [*]."""
    social = obs.shape[-1] == SUMMARY_INPUTS
    velocity = obs[..., 2:4]
    speed = torch.linalg.vector_norm(velocity, dim=-1, keepdim=True)  # [*, 1]
    resting = speed * sea.FISH_MAX_SPEED <= sea.REST_SPEED
    heading = torch.where(resting, torch.cat((torch.ones_like(speed), torch.zeros_like(speed)), -1), velocity / speed)
    pairs = [obs[..., 0:2], obs[..., 6:10]] + ([obs[..., 12:14]] if social else [])
    x, y = torch.cat(pairs, -1).unflatten(-1, (-1, 2)).unbind(-1)  # [*, 3 or 4]: place, predator, its velocity, crowd
    hx, hy = heading[..., :1], heading[..., 1:]
    ahead, left = x * hx + y * hy, y * hx - x * hy
    mirrored = torch.where(obs[..., 5] > 0, left[..., 1], -left[..., 0]) < 0
    side = (1.0 - 2.0 * mirrored.to(obs.dtype))[..., None]
    left = left * side
    away, swims = torch.stack((ahead[..., 1], left[..., 1]), -1), torch.stack((ahead[..., 2], left[..., 2]), -1)
    pace = torch.linalg.vector_norm(swims, dim=-1, keepdim=True).clamp(min=TINY)
    before = -(away * swims).sum(-1, keepdim=True) / pace  # the fish as the predator sees it: ahead, and aside
    aside = (away[..., :1] * swims[..., 1:] - away[..., 1:] * swims[..., :1]) / pace
    features = [ahead, left, speed, obs[..., 4:6], obs[..., 10:11], before, aside]
    more = obs[..., OWN_INPUTS:]
    if social:
        features += [obs[..., 11:12], obs[..., 14:18]]
    elif obs.shape[-1] == RAY_INPUTS:
        features.append(_rays(more, mirrored))
    elif obs.shape[-1] > OWN_INPUTS:
        features.append(_neighbours(more, heading, side))
    return torch.cat(features, -1), mirrored


def _rays(seen: Tensor, mirrored: Tensor) -> Tensor:
    """Sectors begin ahead already; mirrored, they run the other way round."""
    sectors = seen.unflatten(-1, (3, RAYS))
    return torch.where(mirrored[..., None, None], sectors.flip(-1).roll(1, -1), sectors).flatten(-2)


def _neighbours(seen: Tensor, heading: Tensor, side: Tensor) -> Tensor:
    """Place and velocity of every neighbour, turned and mirrored."""
    rows = seen.unflatten(-1, (-1, NEIGHBOUR_INPUTS))  # [*, K, 5]
    x, y = rows[..., :4].unflatten(-1, (2, 2)).unbind(-1)  # [*, K, 2]: place, velocity
    hx, hy = heading[..., :1, None], heading[..., 1:, None]
    turned = torch.stack((x * hx + y * hy, (y * hx - x * hy) * side[..., None]), -1).flatten(-2)
    return torch.cat((turned, rows[..., 4:]), -1).flatten(-2)


class OwnFrameActorCritic(ActorCritic):
    """Policy and value network behind `own_frame`; where a fish sees its neighbours one by one, they attend."""

    def __init__(
        self, obs_size: int, heads: Sequence[int], hidden: Sequence[int], activation: Activation,
        generator: torch.Generator | None = None, attends: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(obs_size + 1, heads, hidden, activation=activation, generator=generator)
        if attends:
            shape = activation, generator, OWN_FEATURES
            self.policy = Attending(hidden, sum(self.heads), 0.01, *shape)  # type: ignore[assignment]
            self.critic = Attending(hidden, 1, 1.0, *shape)  # type: ignore[assignment]

    def logits(self, obs: Tensor) -> Tensor:
        features, mirrored = own_frame(obs)
        forward, left, right, brake, hold = self.policy(features).unbind(-1)
        left, right = torch.where(mirrored, right, left), torch.where(mirrored, left, right)
        return torch.stack((forward, left, right, brake, hold), -1)

    def value(self, obs: Tensor) -> Tensor:
        return self.critic(own_frame(obs)[0]).squeeze(-1)
