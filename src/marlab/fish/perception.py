"""What a fish perceives: its own motion, the predator when near, and a summary of its neighbours.

| inputs | content | unit |
|---|---|---|
| 0, 1 | own position | arena radius |
| 2, 3 | own velocity | fish top speed |
| 4 | distance to the wall | arena radius |
| 5 | predator visible | 0 or 1 |
| 6, 7 | predator position minus own | vision radius, 0 when not visible |
| 8, 9 | predator velocity (absolute) | fish top speed, 0 when not visible |
| 10 | predator distance | vision radius, 0 when not visible |
| 11 | neighbours / K, at most 1 | |
| 12, 13 | mean offset of the K nearest neighbours | neighbour radius |
| 14 | distance of the nearest neighbour | neighbour radius |
| 15, 16 | mean and deviation of all neighbours' speeds | fish top speed |
| 17 | mean speed at which neighbours move away | fish top speed |
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marlab.fish import sea
from marlab.fish.dynamics import SeaState
from marlab.fish.sea import SeaConfig

FAR = 1e9
"""Where the dead are put when neighbours are sought (m): far from everybody, and its square is still finite."""


class Neighbours(NamedTuple):
    """Each fish's neighbours in numbers, every plane [B, F]; meaningless for a fish that is not alive."""

    number: Tensor  # living fish within the radius, not capped
    mean_dx: Tensor  # m, over the K nearest
    mean_dy: Tensor
    nearest: Tensor  # m
    speed_mean: Tensor  # m/s, over all neighbours
    speed_std: Tensor
    divergence: Tensor  # m/s: mean of v_j . u_ij, u_ij pointing from the fish to its neighbour


def neighbours(state: SeaState, cfg: SeaConfig) -> Neighbours:
    """Summaries over every fish's living neighbours; all zero for a fish that has none.

    Pairs are [B, F, F], fish first, neighbour last. The K nearest are found by stepping K times to the next larger
    distance: cheap, free of sorting, and one fused pass on a GPU. Exactly equal distances count as one step.
    """
    radius_sq = cfg.neighbor_radius**2
    x, y = torch.where(state.alive, state.x, FAR), torch.where(state.alive, state.y, FAR)
    speed = torch.sqrt(state.vx * state.vx + state.vy * state.vy)[:, None, :]
    dx, dy = x[:, None, :] - state.x[:, :, None], y[:, None, :] - state.y[:, :, None]
    distance_sq = dx * dx + dy * dy
    distance_sq = distance_sq + FAR * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)  # nobody neighbours itself
    near = (distance_sq <= radius_sq).to(x.dtype)
    number = near.sum(-1)
    per_neighbour = 1 / number.clamp(min=1.0)

    nearest_sq = reach_sq = distance_sq.amin(-1)
    for _ in range(min(cfg.neighbor_average_count, x.shape[1]) - 1):
        reach_sq = torch.where(distance_sq > reach_sq[..., None], distance_sq, torch.inf).amin(-1)
    closest = (distance_sq <= reach_sq.clamp(max=radius_sq)[..., None]).to(x.dtype)
    per_closest = 1 / closest.sum(-1).clamp(min=1.0)

    speed_mean = (near * speed).sum(-1) * per_neighbour
    speed_offset = near * (speed - speed_mean[..., None])
    leaving = (state.vx[:, None, :] * dx + state.vy[:, None, :] * dy) * torch.rsqrt(distance_sq.clamp(min=1e-12))
    return Neighbours(
        number=number,
        mean_dx=(closest * dx).sum(-1) * per_closest,
        mean_dy=(closest * dy).sum(-1) * per_closest,
        nearest=torch.where(nearest_sq <= radius_sq, nearest_sq.sqrt(), 0.0),
        speed_mean=speed_mean,
        speed_std=torch.sqrt((speed_offset * speed_offset).sum(-1) * per_neighbour),
        divergence=(near * leaving).sum(-1) * per_neighbour,
    )


class Sight(NamedTuple):
    """The predator as each fish sees it; every plane [B, F]."""

    dx: Tensor  # m, predator minus fish
    dy: Tensor
    distance: Tensor
    visible: Tensor  # bool: strictly inside the vision radius


def sight(state: SeaState) -> Sight:
    dx, dy = state.predator_x[:, None] - state.x, state.predator_y[:, None] - state.y
    distance = torch.sqrt(dx * dx + dy * dy)
    return Sight(dx, dy, distance, distance < sea.VISION_RADIUS)


def wall_distance(state: SeaState) -> Tensor:
    """[B, F] m"""
    return sea.ARENA_RADIUS - torch.sqrt(state.x * state.x + state.y * state.y)


def observe(
    state: SeaState,
    cfg: SeaConfig,
    social: Neighbours | None = None,
    seen: Sight | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Observations [B, F, D], zero rows for fish that are not alive; `social` and `seen` are computed unless given."""
    seen = sight(state) if seen is None else seen
    seeing = (seen.visible & state.alive).to(state.x.dtype)
    living = state.alive.to(state.x.dtype)
    over_arena, over_speed = living * (1 / sea.ARENA_RADIUS), living * (1 / sea.FISH_MAX_SPEED)
    over_vision, over_speed_seen = seeing * (1 / sea.VISION_RADIUS), seeing * (1 / sea.FISH_MAX_SPEED)
    columns = [
        state.x * over_arena,
        state.y * over_arena,
        state.vx * over_speed,
        state.vy * over_speed,
        wall_distance(state) * over_arena,
        seeing,
        seen.dx * over_vision,
        seen.dy * over_vision,
        state.predator_vx[:, None] * over_speed_seen,
        state.predator_vy[:, None] * over_speed_seen,
        seen.distance * over_vision,
    ]
    if cfg.include_neighbor_features:
        social = neighbours(state, cfg) if social is None else social
        over_radius = living * (1 / cfg.neighbor_radius)
        columns += [
            (social.number * (1 / cfg.neighbor_average_count)).clamp(max=1.0) * living,
            social.mean_dx * over_radius,
            social.mean_dy * over_radius,
            social.nearest * over_radius,
            social.speed_mean * over_speed,
            social.speed_std * over_speed,
            social.divergence * over_speed,
        ]
    return torch.stack(columns, dim=-1, out=out)
