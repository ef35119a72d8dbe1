"""How predators move, mode by mode: batched, without reading anything back to the host.

`ballistic` does not see the fish. All others hunt: they swim at their top speed (`predator_speed`) and turn at most
`predator_turn_rate`, towards the nearest fish within `predator_vision`; with nobody in sight they go straight on. At
the wall they bounce as the ballistic one does.

| mode | aims at | memory [B, M] |
|---|---|---|
| `ballistic` | nothing: it falls north, or (`predator_pull=random`) to a side that each episode draws | pull x, y |
| `pursuit` | where the nearest fish is | |
| `intercept` | where the nearest fish will be when it gets there, if it swims straight on | |
| `burst` | as pursuit; near prey it is faster until its breath is spent, then it rests | breath (s), resting (0, 1) |
| `learned` | what its network says (`sea/learned.py`), within the same limits | |
| `pack` | as intercept, several predators; each takes the nearest of the fish that no other is nearer to | |
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import Predator, PredatorStep, SeaState, ballistic_step, bounce

NOWHERE = 1e9
"""Squared distance (m) of fish that cannot be hunted."""


class Prey(NamedTuple):
    """The fish that each predator hunts; every plane [B, P]."""

    dx: Tensor  # m, fish minus predator
    dy: Tensor
    vx: Tensor  # m/s, of the fish
    vy: Tensor
    distance: Tensor  # m
    seen: Tensor  # bool: there is one
    crowd: Tensor | None  # other living fish close to it; None where nobody asks


def predator_step(cfg: SeaConfig) -> PredatorStep:
    """The move of the predators in a sea with these settings."""
    if cfg.predator_mode == "ballistic":
        return partial(
            _fall, pull=sea.PREDATOR_PULL * cfg.predator_speed_factor**2, turned=cfg.predator_pull == "random"
        )
    if cfg.predator_mode == "learned":
        from marlab.fish.sea.learned import learned_step  # it stands on this module

        return learned_step(cfg)
    return partial(
        {"pursuit": _pursue, "intercept": _intercept, "burst": _burst, "pack": _intercept}[cfg.predator_mode], cfg=cfg
    )


def _fall(state: SeaState, pull: float, turned: bool) -> SeaState:
    if not turned:
        return state.with_predator(ballistic_step(state.predator, pull))
    vx = state.predator_vx + (pull * sea.DT) * state.memory[:, 0]
    vy = state.predator_vy + (pull * sea.DT) * state.memory[:, 1]
    x, y = state.predator_x + sea.DT * vx, state.predator_y + sea.DT * vy
    return state.with_predator(Predator(*bounce(x, y, vx, vy, sea.PREDATOR_RESTITUTION)))


def _pursue(state: SeaState, cfg: SeaConfig) -> SeaState:
    prey = nearest_prey(state, cfg)
    return state.with_predators(swim(state.predators, prey.dx, prey.dy, prey.seen, *limits(cfg, prey)))


def _intercept(state: SeaState, cfg: SeaConfig) -> SeaState:
    prey = nearest_prey(state, cfg)
    top, turn = limits(cfg, prey)
    aim_x, aim_y = ahead(prey, top)
    return state.with_predators(swim(state.predators, aim_x, aim_y, prey.seen, top, turn))


def _burst(state: SeaState, cfg: SeaConfig) -> SeaState:
    prey = nearest_prey(state, cfg)
    top, turn = limits(cfg, prey)
    breath, resting = state.memory[:, :1], state.memory[:, 1:] > 0
    bursting = ~resting & prey.seen & (prey.distance < sea.STRIKE_RANGE)
    regained = sea.DT * sea.BREATH / sea.RECOVERY
    breath = (breath + torch.where(bursting, -sea.DT, regained)).clamp(0.0, sea.BREATH)
    # Half a step of slack: sums of tenths are not exact.
    resting = torch.where(resting, breath < sea.BREATH - 0.5 * regained, breath < 0.5 * sea.DT)
    factor = torch.where(bursting, sea.BURST_FACTOR, torch.where(state.memory[:, 1:] > 0, sea.TIRED_FACTOR, 1.0))
    moved = swim(state.predators, prey.dx, prey.dy, prey.seen, top * factor, turn)
    return state.with_predators(moved)._replace(memory=torch.cat((breath, resting.to(breath.dtype)), 1))


def limits(cfg: SeaConfig, prey: Prey | None = None) -> tuple[float, Tensor | float]:
    """Top speed (m/s) and the largest turn in one step (rad); a crowd around the prey lames the turn."""
    turn = cfg.predator_turn_rate * sea.DT
    if prey is None or prey.crowd is None:
        return cfg.predator_speed * cfg.predator_speed_factor, turn
    return cfg.predator_speed * cfg.predator_speed_factor, turn / (1 + cfg.predator_confusion * prey.crowd)


def nearest_prey(state: SeaState, cfg: SeaConfig) -> Prey:
    """The living fish nearest to each predator within its vision; in a pack the fish are shared out first."""
    hunters = state.predators
    dx = state.x[:, None] - hunters.x[..., None]  # [B, P, F]
    dy = state.y[:, None] - hunters.y[..., None]
    distance_sq = torch.where(state.alive[:, None], dx * dx + dy * dy, NOWHERE)
    if cfg.predator_count > 1:  # each fish belongs to the predator that is nearest to it
        others = distance_sq > distance_sq.amin(1, keepdim=True)
        shared = distance_sq + others * NOWHERE
        alone = shared.amin(2, keepdim=True) >= cfg.predator_vision**2  # nobody of one's own in sight: help the others
        distance_sq = torch.where(alone, distance_sq, shared)
    least, index = distance_sq.min(2, keepdim=True)  # [B, P, 1]
    near_x, near_y = dx.gather(2, index), dy.gather(2, index)
    fish = index[..., 0]
    crowd = None
    if cfg.predator_confusion > 0:
        apart = (dx - near_x).square() + (dy - near_y).square()
        close = (apart <= sea.CONFUSION_RADIUS**2) & state.alive[:, None]
        crowd = close.sum(2, dtype=dx.dtype) - 1
    return Prey(
        near_x[..., 0], near_y[..., 0], state.vx.gather(1, fish), state.vy.gather(1, fish),
        least[..., 0].sqrt(), least[..., 0] < cfg.predator_vision**2, crowd,
    )  # fmt: skip


def ahead(prey: Prey, top: float) -> tuple[Tensor, Tensor]:
    """Where the prey will be when the predator gets there (relative, m): two rounds of time = way / speed."""
    time = torch.zeros_like(prey.dx)
    for _ in range(2):
        way = torch.hypot(prey.dx + prey.vx * time, prey.dy + prey.vy * time)
        time = (way / top).clamp(max=sea.INTERCEPT_HORIZON)
    return prey.dx + prey.vx * time, prey.dy + prey.vy * time


def swim(
    hunters: Predator, aim_x: Tensor, aim_y: Tensor, aiming: Tensor, top: Tensor | float, turn: Tensor | float
) -> Predator:
    """One step towards an aim (relative, m) where there is one; `turn` (rad) and the acceleration are limits."""
    _, _, vx, vy = hunters
    speed = torch.sqrt(vx * vx + vy * vy)
    moving = speed > sea.REST_SPEED
    reach = torch.sqrt(aim_x * aim_x + aim_y * aim_y).clamp(min=1e-6)
    scale = 1 / speed.clamp(min=sea.REST_SPEED)
    # A predator at rest has no heading: it takes the one it wants, or +x.
    hx = torch.where(moving, vx * scale, torch.where(aiming, aim_x / reach, 1.0))
    hy = torch.where(moving, vy * scale, torch.where(aiming, aim_y / reach, 0.0))
    wanted = torch.atan2(hx * aim_y - hy * aim_x, hx * aim_x + hy * aim_y)
    within = wanted.clamp(-turn, turn)  # type: ignore[arg-type]  # both are numbers, or both tensors
    return drive(hunters, hx, hy, speed, within * aiming, top)


def drive(hunters: Predator, hx: Tensor, hy: Tensor, speed: Tensor, angle: Tensor, top: Tensor | float) -> Predator:
    """Turn the heading (hx, hy) by `angle` (rad), come nearer to the speed `top`, move, and bounce off the wall."""
    c, s = torch.cos(angle), torch.sin(angle)
    gain = sea.HUNTER_ACCELERATION * sea.DT
    speed = speed + (top - speed).clamp(-gain, gain)
    vx, vy = speed * (c * hx - s * hy), speed * (s * hx + c * hy)
    moved = bounce(hunters.x + sea.DT * vx, hunters.y + sea.DT * vy, vx, vy, sea.PREDATOR_RESTITUTION)
    return Predator(*moved)


# ---------------------------------------------------------------- how predators begin


def company(predator: Predator, cfg: SeaConfig) -> Tensor:
    """[B, 4 (P - 1)] the rest of the pack: the first predator's start, turned around the centre in equal parts."""
    planes: list[list[Tensor]] = [[], [], [], []]
    for mate in range(1, cfg.predator_count):
        angle = 2 * math.pi * mate / cfg.predator_count
        c, s = math.cos(angle), math.sin(angle)
        for into, (a, b) in ((0, predator[:2]), (2, predator[2:])):
            planes[into].append(c * a - s * b)
            planes[into + 1].append(s * a + c * b)
    if cfg.predator_count == 1:
        return predator.x.new_zeros(len(predator.x), 0)
    return torch.stack([value for plane in planes for value in plane], 1)


def first_memory(predator: Predator, cfg: SeaConfig, side: Tensor | None) -> Tensor:
    """[B, M] what each predator's mode begins with; `side` [B] (rad) is how far its pull is turned from north."""
    if side is not None:
        return torch.stack((-torch.sin(side), torch.cos(side)), 1)
    memory = predator.x.new_zeros(len(predator.x), cfg.predator_memory)
    if cfg.predator_mode == "burst":
        memory[:, 0] = sea.BREATH
    return memory


def faster(predator: Predator, factor: float) -> Predator:
    return predator._replace(vx=predator.vx * factor, vy=predator.vy * factor)


def turned(predator: Predator, angle: Tensor) -> Predator:
    """The predator turned around the centre by `angle` [B] (rad), place and velocity alike."""
    c, s = torch.cos(angle), torch.sin(angle)
    x, y, vx, vy = predator
    return Predator(c * x - s * y, s * x + c * y, c * vx - s * vy, s * vx + c * vy)
