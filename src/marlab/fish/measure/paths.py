"""Where everybody swims: some arenas played for the replay page, the same ones by every policy.

Letters as in `pathfile`: A arenas with paths, E arenas looked at, T steps, F fish, K predators, G cells, H headings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marlab.fish.measure.pathfile import FIELD_CELLS, FIELD_REACH, FIELD_SPEED, HEADINGS
from marlab.fish.measure.policies import Policy, moments
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.perception import neighbours, observe, pair_scratch, sight
from marlab.fish.sea.reset import seeded_reset
from marlab.lab.ppo.nets import ActorCritic


class Swimmer(NamedTuple):
    """A policy and the sea as it sees it: policies may differ in what they observe, never in how the sea moves."""

    policy: Policy
    cfg: SeaConfig


@torch.no_grad()
def follow(
    players: Mapping[str, Swimmer], seeds: Sequence[int], keep: int, device: torch.device | str = "cpu"
) -> dict[str, Any]:
    """Play everybody in the same arenas; paths of the first `keep` of them, deaths of all."""
    start, _ = seeded_reset(seeds, next(iter(players.values())).cfg, device=device)
    told = [_played(start, player.policy, player.cfg, keep) for player in players.values()]
    return {name: np.stack([each[name] for each in told]) for name in told[0]}


def _played(start: SeaState, policy: Policy, cfg: SeaConfig, keep: int) -> dict[str, NDArray[Any]]:
    actions: list[Tensor] = []

    def watched(obs: Tensor) -> Tensor:
        chosen = policy(obs)
        actions.append(chosen[:keep].to(torch.int8).cpu())
        return chosen

    places, hunters, state = [start.positions[:keep].cpu()], [_predators(start)[:keep]], start
    death_place = torch.full_like(start.positions, math.nan)
    for was_alive, state, _, _ in moments(start, watched, cfg):
        death_place = torch.where((was_alive & ~state.alive)[..., None], state.positions, death_place)
        places.append(state.positions[:keep].cpu())
        hunters.append(_predators(state)[:keep])
    deaths = state.death_step.to(torch.int16).cpu().numpy()
    return {
        "position": torch.stack(places, 1).numpy().astype(np.float16),
        "predator": torch.stack(hunters, 1).numpy().astype(np.float16),
        "action": torch.stack(actions, 1).numpy(), "death": deaths[:keep],
        "death_place": death_place.cpu().numpy().astype(np.float16), "death_step": deaths,
    }  # fmt: skip


def _predators(state: SeaState) -> Tensor:
    """[E, K, 2] on the host."""
    hunters = state.predators
    return torch.stack((hunters.x, hunters.y), -1).cpu()


@torch.no_grad()
def policy_field(
    net: ActorCritic, cfg: SeaConfig, device: torch.device | str = "cpu"
) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """What a lone fish does at every place around a predator that swims east from the middle of the tank."""
    alone = replace(cfg, num_fish=1)
    start, _ = seeded_reset([0], alone, device=device)
    side = torch.linspace(-FIELD_REACH, FIELD_REACH, FIELD_CELLS, device=device)
    y, x = (axis.reshape(-1, 1) for axis in torch.meshgrid(side, side, indexing="ij"))  # [G*G, 1]
    many = SeaState(*(plane[:1].expand(len(x), *plane.shape[1:]).clone() for plane in start))
    actions, chances = [], []
    for heading in range(len(HEADINGS)):
        angle = heading * math.pi / 2
        state = many._replace(
            x=x.to(many.x), y=y.to(many.y), vx=torch.full_like(many.x, FIELD_SPEED * math.cos(angle)),
            vy=torch.full_like(many.x, FIELD_SPEED * math.sin(angle)), alive=torch.ones_like(many.alive),
            predator_x=torch.zeros_like(many.predator_x), predator_y=torch.zeros_like(many.predator_y),
            predator_vx=torch.full_like(many.predator_vx, sea.PREDATOR_SPEED),
            predator_vy=torch.zeros_like(many.predator_vy),
        )  # fmt: skip
        social = neighbours(state, alone, pair_scratch(state)) if alone.include_neighbor_features else None
        chance = net.logits(observe(state, alone, social, sight(state))).softmax(-1)[:, 0]  # [G*G, A]
        best = chance.max(-1)
        actions.append(best.indices.reshape(FIELD_CELLS, FIELD_CELLS).to(torch.int8).cpu().numpy())
        chances.append(best.values.reshape(FIELD_CELLS, FIELD_CELLS).cpu().numpy().astype(np.float16))
    return np.stack(actions), np.stack(chances)
