"""Two richer views of the neighbours, in place of their seven summary numbers (`neighbor_view`).

`nearest`: each of the K nearest neighbours by itself, five numbers: where it is (neighbour radius), its velocity (top
speed), and 1; zeros where there are fewer. `rays`: 16 sectors around the fish, the first one ahead, counter-clockwise,
three numbers each: how close the nearest fish, the predator and the wall are there (1 touching, 0 out of sight).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import NEIGHBOUR_INPUTS, RAYS, SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.perception import FAR, Sight


def richer(state: SeaState, cfg: SeaConfig, seen: Sight) -> Tensor:
    """[B, F, ...] the inputs after the first eleven; zero for fish that are not alive."""
    view = _nearest(state, cfg) if cfg.neighbor_view == "nearest" else _rays(state, cfg, seen)
    return view * state.alive[..., None]


def _pairs(state: SeaState) -> tuple[Tensor, Tensor, Tensor]:
    """Neighbour minus fish, and the distance, each [B, F, F]; the dead and oneself are far."""
    dx = state.x[:, None] - state.x[:, :, None]
    dy = state.y[:, None] - state.y[:, :, None]
    gone = ~state.alive[:, None] | torch.eye(state.x.shape[1], dtype=torch.bool, device=state.x.device)
    return dx, dy, torch.where(gone, FAR, torch.sqrt(dx * dx + dy * dy))


def _nearest(state: SeaState, cfg: SeaConfig) -> Tensor:
    dx, dy, distance = _pairs(state)
    count = min(cfg.neighbor_average_count, state.x.shape[1])
    apart, index = distance.topk(count, dim=2, largest=False)  # [B, F, K]
    there = (apart <= cfg.neighbor_radius).to(dx.dtype)
    vx, vy = (v[:, None].expand_as(dx).gather(2, index) / sea.FISH_MAX_SPEED for v in (state.vx, state.vy))
    x, y = dx.gather(2, index) / cfg.neighbor_radius, dy.gather(2, index) / cfg.neighbor_radius
    rows = (torch.stack((x, y, vx, vy, torch.ones_like(x)), -1) * there[..., None]).flatten(2)
    missing = NEIGHBOUR_INPUTS * (cfg.neighbor_average_count - count)
    return torch.nn.functional.pad(rows, (0, missing)) if missing else rows


def _rays(state: SeaState, cfg: SeaConfig, seen: Sight) -> Tensor:
    heading = torch.atan2(state.vy, state.vx)  # [B, F]
    dx, dy, distance = _pairs(state)
    rays = torch.arange(RAYS, device=state.x.device)

    def sector(dx: Tensor, dy: Tensor, heading: Tensor) -> Tensor:
        turn = (torch.atan2(dy, dx) - heading) / (2 * math.pi / RAYS)
        return torch.round(turn).to(torch.int64) % RAYS

    closeness = (1 - distance / cfg.neighbor_radius).clamp(min=0.0)
    where = sector(dx, dy, heading[..., None])  # [B, F, F]
    fish = closeness.new_zeros(*closeness.shape[:2], RAYS).scatter_reduce_(2, where, closeness, "amax")
    hunter = (1 - seen.distance / cfg.vision_radius).clamp(min=0.0)[..., None]
    predator = hunter * (sector(seen.dx, seen.dy, heading)[..., None] == rays)
    angle = heading[..., None] + rays * (2 * math.pi / RAYS)
    rx, ry = torch.cos(angle), torch.sin(angle)
    along = state.x[..., None] * rx + state.y[..., None] * ry
    inside = (sea.ARENA_RADIUS**2 - state.x * state.x - state.y * state.y)[..., None]
    way = torch.sqrt((along * along + inside).clamp(min=0.0)) - along  # to the wall along the ray
    wall = (1 - way / cfg.vision_radius).clamp(0.0, 1.0)
    return torch.cat((fish, predator, wall), -1)
