"""Scripted policies: the ladder every trained policy is measured against.

A policy is a function from observations [..., D] to actions [...] (int64), the same for scripts and networks, so that
a script sees no more than a fish does. `play` runs one over whole episodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.fish.measure.config import SCRIPTED
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import PredatorStep, SeaState, advance
from marlab.fish.sea.perception import Neighbours, Sight, neighbours, observe, pair_scratch, sight
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.rewards import crowding, reward
from marlab.lab.errors import UserError

Policy = Callable[[Tensor], Tensor]
"""Observations [..., D] -> actions [...] in 0-4."""


AIM_COSINE = math.cos(math.radians(15))
"""A heading within 15 degrees of the wanted direction is good enough to accelerate."""
REFUGE_Y = -7.5
REFUGE_HALF_WIDTH = 5.0
REFUGE_RADIUS = 0.5
WALL_SHARE, TURN_BACK_SHARE = 0.25, 0.2
"""Reactive scripts keep off the wall within these shares of the radius: while they flee, and while they cruise."""
BEHIND = -0.7
"""A fish further than this (m) behind the predator has been passed and need not step aside."""


def always(action: int) -> Policy:
    """The same action for everybody."""

    def policy(obs: Tensor) -> Tensor:
        return torch.full(obs.shape[:-1], action, dtype=torch.int64, device=obs.device)

    return policy


def at_random(generator: torch.Generator) -> Policy:
    """Every fish draws each action with equal probability."""

    def policy(obs: Tensor) -> Tensor:
        return torch.randint(0, sea.ACTION_COUNT, obs.shape[:-1], generator=generator, device=obs.device)

    return policy


def broadcast_random(generator: torch.Generator) -> Policy:
    """One random action per arena, copied to all its fish (what the original trained with)."""

    def policy(obs: Tensor) -> Tensor:
        shared = torch.randint(0, sea.ACTION_COUNT, obs.shape[:-2], generator=generator, device=obs.device)
        return shared[..., None].expand(obs.shape[:-1])

    return policy


def flee(obs: Tensor) -> Tensor:
    """Swim straight away from a visible predator, else hold."""
    away_x, away_y = -obs[..., 6], -obs[..., 7]
    return torch.where(_visible(obs), _steer(obs, away_x, away_y), sea.HOLD)


def south(obs: Tensor) -> Tensor:
    """Go to the southern refuge and stop there, whatever the predator does."""
    x, y = obs[..., 0] * sea.ARENA_RADIUS, obs[..., 1] * sea.ARENA_RADIUS
    to_x = x.clamp(-REFUGE_HALF_WIDTH, REFUGE_HALF_WIDTH) - x
    to_y = REFUGE_Y - y
    arrived = torch.hypot(to_x, to_y) < REFUGE_RADIUS
    return torch.where(arrived, sea.BRAKE, _steer(obs, to_x, to_y))


def sidestep(obs: Tensor) -> Tensor:
    """Leave the line of a visible predator that has not passed yet, else go south."""
    x, y = -obs[..., 6] * sea.VISION_RADIUS, -obs[..., 7] * sea.VISION_RADIUS  # fish minus predator
    speed = torch.hypot(obs[..., 8], obs[..., 9]).clamp(min=1e-9)
    wx, wy = obs[..., 8] / speed, obs[..., 9] / speed
    ahead = x * wx + y * wy
    aside = _steer(obs, x - ahead * wx, y - ahead * wy)
    return torch.where(_visible(obs) & (ahead > BEHIND), aside, south(obs))


def reactive(near: float, behind: float, idle: int) -> Policy:
    """Flee from a visible predator; nearer than `near` (m) leave its line instead, and by `behind` towards its tail.

    Fish keep off the wall while they do. With no predator in sight they play `idle`; those that go `FORWARD` turn
    inwards at the wall.
    """

    def policy(obs: Tensor) -> Tensor:
        x, y = -obs[..., 6] * sea.VISION_RADIUS, -obs[..., 7] * sea.VISION_RADIUS  # fish minus predator
        wx, wy = _unit(obs[..., 8], obs[..., 9])
        line = x * wx + y * wy
        aside_x, aside_y = _unit(x - line * wx, y - line * wy)
        away_x, away_y = _unit(x, y)
        close = torch.hypot(x, y) < near
        out_x, out_y = _unit(obs[..., 0], obs[..., 1])
        from_wall = (1 - obs[..., 4] / WALL_SHARE).clamp(min=0.0)
        to_x = torch.where(close, aside_x - behind * wx, away_x) - from_wall * out_x
        to_y = torch.where(close, aside_y - behind * wy, away_y) - from_wall * out_y
        rest = torch.full_like(close, idle, dtype=torch.int64)
        if idle == sea.FORWARD:
            rest = torch.where(obs[..., 4] < TURN_BACK_SHARE, _steer(obs, -obs[..., 0], -obs[..., 1]), rest)
        return torch.where(_visible(obs), _steer(obs, to_x, to_y), rest)

    return policy


def _unit(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    length = torch.hypot(x, y).clamp(min=1e-6)
    return x / length, y / length


def _visible(obs: Tensor) -> Tensor:
    return obs[..., 5] > 0


def _steer(obs: Tensor, to_x: Tensor, to_y: Tensor) -> Tensor:
    """Forward when heading (nearly) along (to_x, to_y), else turn towards it; a fish at rest must first move."""
    vx, vy = obs[..., 2], obs[..., 3]
    speed, reach = torch.hypot(vx, vy), torch.hypot(to_x, to_y)
    along, across = vx * to_x + vy * to_y, vx * to_y - vy * to_x
    aimed = (along >= AIM_COSINE * speed * reach) | (speed * sea.FISH_MAX_SPEED <= sea.REST_SPEED)
    return torch.where(aimed, sea.FORWARD, torch.where(across > 0, sea.LEFT, sea.RIGHT))


_FIXED: dict[str, Policy] = {
    "hold": always(sea.HOLD), "brake": always(sea.BRAKE), "forward": always(sea.FORWARD), "left": always(sea.LEFT),
    "flee": flee, "south": south, "sidestep": sidestep, "evade": reactive(0.0, 0.0, sea.FORWARD),
    "swerve": reactive(2.0, 0.0, sea.FORWARD), "dodge": reactive(4.0, 0.0, sea.FORWARD),
    "slip": reactive(4.0, 0.7, sea.BRAKE),
}  # fmt: skip


def scripted(name: str, generator: torch.Generator | None = None) -> Policy:
    """The policy called `name`; the random ones draw from `generator`."""
    if name in _FIXED:
        return _FIXED[name]
    if name not in SCRIPTED:
        raise UserError(f"There is no scripted policy '{name}'; choose one of {', '.join(SCRIPTED)}.")
    if generator is None:
        raise UserError(f"The policy '{name}' draws random numbers; give it a generator.")
    return at_random(generator) if name == "random" else broadcast_random(generator)


class Played(NamedTuple):
    """Whole episodes, one per arena."""

    final: SeaState
    total_reward: Tensor  # [B] sum over steps of the mean reward of the existing fish
    alive_counts: Tensor  # [T, B] living fish after each step

    @property
    def survival(self) -> Tensor:
        """[B] share of the existing fish that lived to the end."""
        return self.final.alive.sum(1) / self.final.exists.sum(1)


class Moment(NamedTuple):
    """One step of an episode: who lived before it, and where it led."""

    was_alive: Tensor  # [B, F] bool
    state: SeaState
    seen: Sight
    social: Neighbours | None  # None where neither rewards nor observations need it


@torch.no_grad()
def moments(
    state: SeaState, policy: Policy, cfg: SeaConfig, steps: int = sea.EPISODE_STEPS,
    hunt: PredatorStep | None = None,
) -> Iterator[Moment]:  # fmt: skip
    """Let `policy` steer every fish from `state`, step by step; `hunt` replaces the move of the sea's predators."""
    hunt = predator_step(cfg) if hunt is None else hunt
    social_reward = cfg.density_penalty_coef != 0 or cfg.divergence_reward_coef != 0
    seen, scratch = sight(state, cfg.vision_radius), pair_scratch(state)
    summary = cfg.include_neighbor_features and cfg.neighbor_view == "summary"
    social = neighbours(state, cfg, scratch) if social_reward or summary else None
    for _ in range(steps):
        actions = policy(observe(state, cfg, social, seen))
        was_alive = state.alive
        state = advance(state, actions, hunt)
        seen = sight(state, cfg.vision_radius)
        social = neighbours(state, cfg, scratch) if social is not None else None
        yield Moment(was_alive, state, seen, social)


@torch.no_grad()
def play(
    state: SeaState,
    policy: Policy,
    cfg: SeaConfig,
    steps: int = sea.EPISODE_STEPS,
    on_step: Callable[[SeaState], None] | None = None,
    hunt: PredatorStep | None = None,
) -> Played:
    """Let `policy` steer every fish from `state` for `steps` steps; `on_step` sees each new state (for films)."""
    crowd = crowding(cfg, state.x.device, state.x.dtype)
    total = torch.zeros_like(state.predator_x)
    alive_counts = []
    fish = state.exists.sum(1)
    for was_alive, now, seen, social in moments(state, policy, cfg, steps, hunt):
        total += reward(now, was_alive, cfg, social, seen, crowd).total().sum(1) / fish
        alive_counts.append(now.alive.sum(1))
        if on_step is not None:
            on_step(now)
    return Played(now, total, torch.stack(alive_counts))
