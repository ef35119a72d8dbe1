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

With another `neighbor_view` the inputs from 11 on are those of `sea/vision.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState

FAR = 1e9
"""Where the dead are put when neighbours are sought (m): far from everybody, and its square is still finite."""
TINY = 1e-12


class Neighbours(NamedTuple):
    """Each fish's neighbours in numbers, every plane [B, F]; meaningless for a fish that is not alive."""

    number: Tensor  # living fish within the radius, not capped
    mean_dx: Tensor  # m, over the K nearest
    mean_dy: Tensor
    nearest: Tensor  # m
    speed_mean: Tensor  # m/s, over all neighbours
    speed_std: Tensor
    divergence: Tensor  # m/s: mean of v_j . u_ij, u_ij pointing from the fish to its neighbour


Scratch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def pair_scratch(state: SeaState) -> Scratch | None:
    """Memory for `neighbours` on a CPU, where fresh memory of this size costs more than the arithmetic."""
    if state.x.device.type != "cpu":
        return None
    arenas, fish = state.x.shape
    a, b, c, d, e, f = (torch.empty(fish, fish, arenas, dtype=state.x.dtype) for _ in range(6))
    return a, b, c, d, e, f


def neighbours(state: SeaState, cfg: SeaConfig, scratch: Scratch | None = None) -> Neighbours:
    """Summaries over every fish's living neighbours; all zero for a fish that has none.

    Pairs are [J, I, B], neighbour first and arena last: sums over neighbours then run along contiguous memory. With
    `scratch` masks are written as floats, since bool tensors do not vectorise; without it they are promoted. The K
    nearest are found by stepping K times to the next larger distance, which needs no sorting and fuses into one pass on
    a GPU; exactly equal distances count as one step.
    """
    dx_out, dy_out, distance_out, near_out, mask_out, product_out = scratch or (None,) * 6
    radius_sq = cfg.neighbor_radius**2
    alive, x, y, vx, vy = (values.t() for values in (state.alive, state.x, state.y, state.vx, state.vy))  # [F, B]
    dx = torch.sub(torch.where(alive, x, FAR)[:, None], x, out=dx_out)
    dy = torch.sub(torch.where(alive, y, FAR)[:, None], y, out=dy_out)
    distance_sq = torch.addcmul(_far_from_oneself(x), dx, dx, out=distance_out).addcmul_(dy, dy)
    near = torch.le(distance_sq, radius_sq, out=near_out)
    number = near.sum(0, dtype=x.dtype)
    per_neighbour = 1 / number.clamp(min=1.0)

    nearest_sq = reach_sq = distance_sq.amin(0)
    for _ in range(min(cfg.neighbor_average_count, len(x)) - 1):
        passed = torch.le(distance_sq, reach_sq, out=mask_out)
        reach_sq = torch.add(distance_sq, passed, alpha=FAR, out=product_out).amin(0)
    closest = torch.le(distance_sq, reach_sq.clamp(max=radius_sq), out=mask_out)
    per_closest = 1 / closest.sum(0, dtype=x.dtype).clamp(min=1.0)
    mean_dx = torch.mul(closest, dx, out=product_out).sum(0) * per_closest
    mean_dy = torch.mul(closest, dy, out=product_out).sum(0) * per_closest

    speed = torch.sqrt(vx * vx + vy * vy)[:, None]
    speed_mean = torch.mul(near, speed, out=product_out).sum(0) * per_neighbour
    offset = torch.sub(speed, speed_mean, out=product_out)
    variance = torch.mul(offset, offset, out=product_out).mul_(near).sum(0) * per_neighbour
    leaving = torch.mul(vx[:, None], dx, out=dx_out).addcmul_(vy[:, None], dy)  # v_j . (p_j - p_i)
    inverse = torch.rsqrt(distance_sq, out=product_out)
    divergence = leaving.mul_(inverse).mul_(near).sum(0) * per_neighbour
    nearest = torch.where(nearest_sq <= radius_sq, nearest_sq.sqrt(), 0.0)
    return Neighbours(
        number.t(), mean_dx.t(), mean_dy.t(), nearest.t(), speed_mean.t(), variance.sqrt().t(), divergence.t()
    )


def _far_from_oneself(x: Tensor) -> Tensor:
    """[F, F, 1] added to squared distances: oneself is far, and fish on one spot are not at distance zero."""
    return FAR * torch.eye(len(x), dtype=x.dtype, device=x.device)[..., None] + TINY


class Sight(NamedTuple):
    """The (nearest) predator as each fish sees it; every plane [B, F], the velocity also [B, 1]."""

    dx: Tensor  # m, predator minus fish
    dy: Tensor
    distance: Tensor
    visible: Tensor  # bool: strictly inside the vision radius
    vx: Tensor  # m/s, of the predator
    vy: Tensor


def sight(state: SeaState, radius: float = sea.VISION_RADIUS) -> Sight:
    """What each fish sees of the predator, of several the nearest, within `radius` (m)."""
    if not state.pack.shape[1]:
        dx, dy = state.predator_x[:, None] - state.x, state.predator_y[:, None] - state.y
        distance = torch.sqrt(dx * dx + dy * dy)
        vx, vy = state.predator_vx[:, None], state.predator_vy[:, None]
        return Sight(dx, dy, distance, distance < radius, vx, vy)
    all_ = state.predators
    dx, dy = all_.x[..., None] - state.x[:, None], all_.y[..., None] - state.y[:, None]  # [B, P, F]
    nearest = (dx * dx + dy * dy).argmin(1, keepdim=True)
    dx, dy = dx.gather(1, nearest)[:, 0], dy.gather(1, nearest)[:, 0]
    distance = torch.sqrt(dx * dx + dy * dy)
    vx, vy = (plane.gather(1, nearest[:, 0]) for plane in (all_.vx, all_.vy))
    return Sight(dx, dy, distance, distance < radius, vx, vy)


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
    seen = sight(state, cfg.vision_radius) if seen is None else seen
    seeing = (seen.visible & state.alive).to(state.x.dtype)
    living = state.alive.to(state.x.dtype)
    over_arena, over_speed = living * (1 / sea.ARENA_RADIUS), living * (1 / sea.FISH_MAX_SPEED)
    over_vision, over_speed_seen = seeing * (1 / sea.VISION_RADIUS), seeing * (1 / sea.FISH_MAX_SPEED)
    columns = [
        state.x * over_arena, state.y * over_arena, state.vx * over_speed, state.vy * over_speed,
        wall_distance(state) * over_arena, seeing, seen.dx * over_vision, seen.dy * over_vision,
        seen.vx * over_speed_seen, seen.vy * over_speed_seen,
        seen.distance * over_vision,
    ]  # fmt: skip
    if cfg.include_neighbor_features and cfg.neighbor_view != "summary":
        from marlab.fish.sea.vision import richer  # it stands on this module

        return torch.cat((torch.stack(columns, dim=-1), richer(state, cfg, seen)), dim=-1, out=out)
    if cfg.include_neighbor_features:
        social = neighbours(state, cfg) if social is None else social
        over_radius = living * (1 / cfg.neighbor_radius)
        columns += [
            (social.number * (1 / cfg.neighbor_average_count)).clamp(max=1.0) * living,
            social.mean_dx * over_radius, social.mean_dy * over_radius, social.nearest * over_radius,
            social.speed_mean * over_speed, social.speed_std * over_speed, social.divergence * over_speed,
        ]  # fmt: skip
    return torch.stack(columns, dim=-1, out=out)
