"""How fish and predator move, and who is eaten: pure functions on tensors, any device, any float type.

Every quantity is a plane of its own (x and y apart) because planes vectorise; `SeaState.positions` and its
siblings give the usual [..., 2] view. Nothing here loops over fish or arenas or reads a value back to the host.

The functions accept any memory layout. `plane` allocates the fast one: on a CPU the arena index is innermost, so that
sums over fish run along contiguous memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea


class Predator(NamedTuple):
    """Position (m) and velocity (m/s) of each arena's predator; every plane [B]."""

    x: Tensor
    y: Tensor
    vx: Tensor
    vy: Tensor


class SeaState(NamedTuple):
    """Everything that changes. After a reset the world is a deterministic function of it and the actions."""

    x: Tensor  # [B, F] m
    y: Tensor  # [B, F]
    vx: Tensor  # [B, F] m/s
    vy: Tensor  # [B, F]
    exists: Tensor  # [B, F] bool: the slot holds a fish in this episode
    alive: Tensor  # [B, F] bool: it has not been eaten yet
    death_step: Tensor  # [B, F] int32, counted from 1; -1 while not eaten
    predator_x: Tensor  # [B]
    predator_y: Tensor  # [B]
    predator_vx: Tensor  # [B]
    predator_vy: Tensor  # [B]
    t: Tensor  # [B] int32: steps taken in this episode
    pack: Tensor  # [B, 4 (P - 1)] the predators beside the first: all x, all y, all vx, all vy
    memory: Tensor  # [B, M] what the predator carries besides; the columns are its mode's (`sea/predators.py`)

    @property
    def predator(self) -> Predator:
        return Predator(self.predator_x, self.predator_y, self.predator_vx, self.predator_vy)

    @property
    def predators(self) -> Predator:
        """All predators of each arena, the first one and its pack; every plane [B, P]."""
        mates = self.pack.shape[1] // 4
        if not mates:
            return Predator(*(plane[:, None] for plane in self.predator))
        return Predator(
            *(torch.cat((one[:, None], more), 1) for one, more in zip(self.predator, self.pack.split(mates, 1)))
        )

    @property
    def positions(self) -> Tensor:
        """[B, F, 2]"""
        return torch.stack((self.x, self.y), dim=-1)

    @property
    def velocities(self) -> Tensor:
        """[B, F, 2]"""
        return torch.stack((self.vx, self.vy), dim=-1)

    @property
    def predator_position(self) -> Tensor:
        """[B, 2]"""
        return torch.stack((self.predator_x, self.predator_y), dim=-1)

    @property
    def predator_velocity(self) -> Tensor:
        """[B, 2]"""
        return torch.stack((self.predator_vx, self.predator_vy), dim=-1)

    def with_predator(self, predator: Predator) -> SeaState:
        return self._replace(
            predator_x=predator.x, predator_y=predator.y, predator_vx=predator.vx, predator_vy=predator.vy
        )

    def with_predators(self, predators: Predator) -> SeaState:
        """With all predators, planes [B, P]."""
        state = self.with_predator(Predator(*(plane[:, 0] for plane in predators)))
        if not self.pack.shape[1]:
            return state
        return state._replace(pack=torch.cat([plane[:, 1:] for plane in predators], 1))

    def clone(self) -> SeaState:
        return SeaState(*(tensor.clone() for tensor in self))

    def to(self, device: torch.device | str) -> SeaState:
        return SeaState(*(tensor.to(device) for tensor in self))

    def select(self, arenas: Tensor | slice) -> SeaState:
        """The same state restricted to some arenas (index tensor, mask or slice over B)."""
        return SeaState(*(tensor[arenas] for tensor in self))


FISH_PLANES = 7
"""The first planes of a `SeaState` are [B, F]; all others have one row per arena."""

PredatorStep = Callable[[SeaState], SeaState]
"""The predators' move, given the fish after theirs."""


ARENA_INNERMOST = {"cpu"}
"""Device types whose planes keep the arena index innermost in memory; on the others it is the fish index."""


def plane(arenas: int, fish: int, dtype: torch.dtype, device: torch.device | str) -> Tensor:
    """A zero [B, F] plane in the layout that is fastest on the device."""
    if torch.device(device).type in ARENA_INNERMOST:
        return torch.zeros(fish, arenas, dtype=dtype, device=device).t()
    return torch.zeros(arenas, fish, dtype=dtype, device=device)


def indicate(compare: Callable[..., Tensor], values: Tensor, limit: Tensor | float) -> Tensor:
    """1.0 where `compare` (torch.gt, torch.eq, ...) holds, else 0.0, in the values' float type."""
    if torch.compiler.is_compiling():
        return compare(values, limit).to(values.dtype)
    return compare(values, limit, out=torch.empty_like(values))  # a bool tensor on the way would take thrice as long


def act(vx: Tensor, vy: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
    """Velocities after the actions 0 forward, 1 left, 2 right, 3 brake, 4 hold; not yet limited to top speed."""
    speed = torch.sqrt(vx * vx + vy * vy)
    moving = indicate(torch.gt, speed, sea.REST_SPEED)
    inverse = moving / speed.clamp(min=sea.REST_SPEED)
    dx, dy = vx * inverse + (1 - moving), vy * inverse  # heading, +x for a fish at rest
    chosen = torch.empty_like(vx).copy_(actions)
    forward, left, right, brake = (indicate(torch.eq, chosen, action) for action in range(sea.HOLD))
    # v' = keep v + along d + across d_perp, with d the heading and d_perp = (-dy, dx)
    turning = left + right
    keep = 1 - turning - (1 - sea.FISH_BRAKE) * brake
    along = turning * speed * math.cos(sea.FISH_TURN) + (sea.FISH_ACCELERATION * sea.DT) * forward
    across = (left - right) * speed * math.sin(sea.FISH_TURN)
    return keep * vx + along * dx - across * dy, keep * vy + along * dy + across * dx


def bounce(x: Tensor, y: Tensor, vx: Tensor, vy: Tensor, restitution: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Put what left the arena back on the wall; the outward part of its velocity is reflected and damped."""
    radius_sq = x * x + y * y
    outside = indicate(torch.gt, radius_sq, sea.ARENA_RADIUS**2)
    removed = (1 + restitution) * outside * (vx * x + vy * y) / radius_sq.clamp(min=1.0)
    shrink = 1 + outside * (sea.ARENA_RADIUS * torch.rsqrt(radius_sq.clamp(min=1.0)) - 1)
    return x * shrink, y * shrink, vx - removed * x, vy - removed * y


def fish_step(state: SeaState, actions: Tensor) -> SeaState:
    """Every living fish obeys its action [B, F] and moves; the eaten lie still where they died."""
    vx, vy = act(state.vx, state.vy, actions)
    speed = torch.sqrt(vx * vx + vy * vy)
    scale = (sea.FISH_MAX_SPEED / speed).clamp(max=1.0) * state.alive  # speed 0 gives inf, hence 1
    vx, vy = vx * scale, vy * scale
    x, y, vx, vy = bounce(state.x + sea.DT * vx, state.y + sea.DT * vy, vx, vy, sea.FISH_RESTITUTION)
    return state._replace(x=x, y=y, vx=vx, vy=vy)


def ballistic_step(predator: Predator, pull: float = sea.PREDATOR_PULL) -> Predator:
    """A ball under constant pull to the north that loses energy at the wall; it does not see the fish."""
    vy = predator.vy + pull * sea.DT
    x, y = predator.x + sea.DT * predator.vx, predator.y + sea.DT * vy
    return Predator(*bounce(x, y, predator.vx, vy, sea.PREDATOR_RESTITUTION))


def ballistic(state: SeaState) -> SeaState:
    """The predator of the original: it falls north."""
    return state.with_predator(ballistic_step(state.predator))


def collide(state: SeaState) -> SeaState:
    """Living fish strictly nearer than the kill distance are eaten at step `state.t`."""
    dx = state.x - state.predator_x[:, None]
    dy = state.y - state.predator_y[:, None]
    distance = torch.sqrt(dx * dx + dy * dy)  # a squared test would misjudge 0.7 itself in float32
    if state.pack.shape[1]:
        mates = state.predators
        distance = torch.hypot(state.x[:, None] - mates.x[..., None], state.y[:, None] - mates.y[..., None]).amin(1)
    hit = state.alive & (distance < sea.KILL_DISTANCE)
    death_step = torch.where(hit, state.t[:, None], state.death_step)
    return state._replace(alive=state.alive & ~hit, death_step=death_step)


def advance(state: SeaState, actions: Tensor, predator_step: PredatorStep = ballistic) -> SeaState:
    """One step of the sea for actions [B, F]: clock, fish, predator, collisions."""
    state = state._replace(t=state.t + 1)
    state = fish_step(state, actions)
    return collide(predator_step(state))
