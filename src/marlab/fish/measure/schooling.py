"""How a shoal swims together, and how its fish flee: numbers of a state, and a watcher that gathers them in an episode.

Polarisation is 1 where all fish swim in one direction, milling 1 where they circle around the middle of the shoal;
both are 0 for random headings (of very many fish). The escape angle is that between the headings of a fish and of a
predator that comes towards it: 0 is flight straight ahead of the predator, 90 degrees a step aside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.perception import sight

FAR = 1e9
EVERY = 10
"""Steps between two looks at the shoal."""
NEAR = 2.0
"""Escape angles are those of fish nearer than this (m) to the predator."""
ANGLE_BINS = 18


class Schooling(NamedTuple):
    """Every plane [B]; NaN where fewer than two fish live."""

    polarisation: Tensor
    milling: Tensor
    nearest: Tensor  # m, mean distance to the nearest living neighbour


def schooling(state: SeaState) -> Schooling:
    """How the living fish of each arena swim together."""
    alive = state.alive.to(state.x.dtype)
    number = alive.sum(1)
    share = alive / number.clamp(min=1.0)[:, None]
    speed = torch.hypot(state.vx, state.vy).clamp(min=1e-6)
    hx, hy = state.vx / speed, state.vy / speed
    polarisation = torch.hypot((hx * share).sum(1), (hy * share).sum(1))
    rx = state.x - (state.x * share).sum(1, keepdim=True)
    ry = state.y - (state.y * share).sum(1, keepdim=True)
    reach = torch.hypot(rx, ry).clamp(min=1e-6)
    milling = ((rx * hy - ry * hx) / reach * share).sum(1).abs()
    dx, dy = state.x[:, :, None] - state.x[:, None], state.y[:, :, None] - state.y[:, None]
    apart = torch.hypot(dx, dy) + torch.where(state.alive[:, None], 0.0, FAR)  # [B, F, F]
    apart = apart + FAR * torch.eye(apart.shape[1], device=apart.device, dtype=apart.dtype)
    nearest = (apart.amin(2) * share).sum(1)
    some = number >= 2
    return Schooling(*(torch.where(some, value, math.nan) for value in (polarisation, milling, nearest)))


def escape_angles(state: SeaState) -> Tensor:
    """[N] degrees, 0 to 180: of living fish within NEAR of a predator that swims towards them."""
    seen = sight(state, NEAR)
    vx, vy = seen.vx.expand_as(seen.dx), seen.vy.expand_as(seen.dy)
    towards = -(vx * seen.dx + vy * seen.dy) > math.cos(math.pi / 4) * torch.hypot(vx, vy) * seen.distance
    chosen = seen.visible & state.alive & towards
    cross, dot = vx * state.vy - vy * state.vx, vx * state.vx + vy * state.vy
    return torch.rad2deg(torch.atan2(cross, dot).abs())[chosen]


def attack_speed(cfg: SeaConfig) -> float:
    """How fast (m/s) a hunter swims at its prey; one that bursts does so near it."""
    burst = sea.BURST_FACTOR if cfg.predator_mode == "burst" else 1.0
    return cfg.predator_speed * cfg.predator_speed_factor * burst


def best_escape_angle(predator_speed: float, fish_speed: float = sea.FISH_MAX_SPEED) -> float:
    """Degrees to flee at, seen from the heading of a faster predator that comes straight on and does not turn.

    A fish at distance d that swims at the angle a passes it at d V sin a / |V - U|, which is largest for cos a = V / U.
    """
    return math.degrees(math.acos(min(1.0, fish_speed / predator_speed)))


@dataclass
class Watcher:
    """Give it every state of an episode (`play(..., on_step=watcher)`)."""

    sums: list[Tensor] = field(default_factory=list)  # [3, B] of single looks
    angles: Tensor = field(default_factory=lambda: torch.zeros(ANGLE_BINS, dtype=torch.int64))

    def __call__(self, state: SeaState) -> None:
        found = escape_angles(state).cpu()
        self.angles += torch.histc(found.double(), ANGLE_BINS, 0.0, 180.0).to(torch.int64)
        if int(state.t.max()) % EVERY == 0:
            self.sums.append(torch.stack(schooling(state)).cpu())

    def means(self) -> dict[str, list[float]]:
        """Per arena, over the looks at which at least two fish lived."""
        values = torch.stack(self.sums).nanmean(0)  # [3, B]
        return {name: row.tolist() for name, row in zip(Schooling._fields, values)}
