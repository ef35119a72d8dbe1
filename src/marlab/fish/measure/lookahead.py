"""A fish that knows the future: look-ahead with the true dynamics, the upper reference of seas without a ceiling.

For every fish each of its five actions is tried with each of a few policies to go on with: the arena is copied and
played `steps` steps ahead with the real predators, while all others follow the first of them. Four scripts are always
among them; a trained policy can be put before them. The action whose best continuation keeps the fish alive longest is
taken; among those that live, the one that kept furthest from the
predators. It is no ceiling: nobody proves that more is impossible. But it knows where every predator and every fish is,
how they move, and looks further than any reaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from marlab.fish.measure.policies import Policy, scripted
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState, advance
from marlab.fish.sea.perception import observe, sight
from marlab.fish.sea.predators import predator_step

CONTINUATIONS = ("dodge", "slip", "swerve", "evade")


@dataclass(frozen=True)
class LookAhead:
    """A `Seer`: tries all actions of every fish, `steps` steps ahead."""

    steps: int = 12
    scripts: Sequence[str] = CONTINUATIONS
    trained: Policy | None = None
    """A policy of 11 inputs: what all others are expected to follow, and one more way to go on."""

    def act(self, state: SeaState, cfg: SeaConfig) -> Tensor:
        """[B, F] actions"""
        go_on = [scripted(name) for name in self.scripts]
        if self.trained is not None:
            go_on.insert(0, self.trained)
        scores = torch.stack([self._scores(state, cfg, go_on[0], mine) for mine in go_on])  # [scripts, 5, B, F]
        return scores.amax(0).argmax(0)

    def _scores(self, state: SeaState, cfg: SeaConfig, others: Policy, mine: Policy) -> Tensor:
        """[5, B, F] what each first action is worth to each fish if it goes on with `mine`."""
        arenas, fish = state.x.shape
        copies = sea.ACTION_COUNT * fish
        now = SeaState(*(plane.repeat(copies, *(1,) * (plane.dim() - 1)) for plane in state))  # [5 F B, ...]
        me = torch.arange(fish, device=state.x.device).repeat_interleave(arenas).repeat(sea.ACTION_COUNT)[:, None]
        first = torch.arange(sea.ACTION_COUNT, device=state.x.device).repeat_interleave(fish * arenas)[:, None]
        hunt, plain = predator_step(cfg), _without_neighbours(cfg)
        lived = torch.zeros(len(me), 1, device=state.x.device)
        nearest = torch.full_like(lived, sea.VISION_RADIUS)
        for step in range(self.steps):
            seen = observe(now, plain)
            own = first if step == 0 else mine(seen).gather(1, me)
            now = advance(now, others(seen).scatter(1, me, own), hunt)
            alive = now.alive.gather(1, me)
            lived += alive
            distance = sight(now, cfg.vision_radius).distance.gather(1, me)
            nearest = torch.where(alive, torch.minimum(nearest, distance), nearest)
        return (lived * sea.ARENA_RADIUS + nearest).view(sea.ACTION_COUNT, fish, arenas).transpose(1, 2)


def _without_neighbours(cfg: SeaConfig) -> SeaConfig:
    """Scripts look at the predator alone; neighbours would only cost time."""
    return SeaConfig(include_neighbor_features=False, vision_radius=cfg.vision_radius)
