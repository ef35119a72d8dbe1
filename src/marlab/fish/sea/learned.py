"""A predator that learned to hunt: what it sees, what it may do, and its file.

It has the limits of the `intercept` predator: the same top speed, turn rate and vision. Every step it chooses one of
five turns (shares of its limit) and one of two speeds. It sees in its own frame, forwards and to its left:

| inputs | content | unit |
|---|---|---|
| 0 | own speed | top speed |
| 1 | distance to the wall | arena radius |
| 2, 3 | the arena's centre | arena radius |
| 4 | share of the fish that live | |
| from 5 | of each of the 6 nearest fish: place (2), velocity (2), 1; zeros for those out of sight | vision, top speed |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import Predator, PredatorStep, SeaState
from marlab.fish.sea.predators import NOWHERE, drive, limits
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.runs.checkpoint import building, load_checkpoint, save_checkpoint

KIND = "fish/predator"
TURNS, PACES = 5, 2
"""From a full turn to the right to a full turn to the left, each at full and at half speed."""
CHOICES = TURNS * PACES
PREY = 6
"""Fish that it sees at once."""
INPUTS = 5 + 5 * PREY


def heading(predator: Predator) -> tuple[Tensor, Tensor, Tensor]:
    """Unit heading (x, y) and speed, each [B]; +x for a predator at rest."""
    speed = torch.sqrt(predator.vx * predator.vx + predator.vy * predator.vy)
    moving = speed > sea.REST_SPEED
    scale = 1 / speed.clamp(min=sea.REST_SPEED)
    return torch.where(moving, predator.vx * scale, 1.0), torch.where(moving, predator.vy * scale, 0.0), speed


def look(state: SeaState, cfg: SeaConfig) -> Tensor:
    """[B, INPUTS]"""
    hx, hy, speed = heading(state.predator)
    x, y = state.predator_x, state.predator_y
    dx, dy = state.x - x[:, None], state.y - y[:, None]  # [B, F]
    distance_sq = torch.where(state.alive, dx * dx + dy * dy, NOWHERE)
    count = min(PREY, state.x.shape[1])
    nearest, index = distance_sq.topk(count, dim=1, largest=False)
    there = (nearest < cfg.predator_vision**2).to(dx.dtype)

    def own_frame(a: Tensor, b: Tensor, unit: float) -> tuple[Tensor, Tensor]:
        a, b = a.gather(1, index) * there / unit, b.gather(1, index) * there / unit
        return a * hx[:, None] + b * hy[:, None], b * hx[:, None] - a * hy[:, None]

    prey = (*own_frame(dx, dy, cfg.predator_vision), *own_frame(state.vx, state.vy, sea.FISH_MAX_SPEED), there)
    rows = torch.stack(prey, 2).flatten(1)  # [B, 5 count]
    if count < PREY:
        rows = torch.nn.functional.pad(rows, (0, 5 * (PREY - count)))
    own = (
        speed / (cfg.predator_speed * cfg.predator_speed_factor),
        1 - torch.sqrt(x * x + y * y) / sea.ARENA_RADIUS,
        -(x * hx + y * hy) / sea.ARENA_RADIUS,
        -(y * hx - x * hy) / sea.ARENA_RADIUS,
        state.alive.sum(1) / state.exists.sum(1).clamp(min=1),
    )
    return torch.cat((torch.stack(own, 1), rows), 1)


def obey(state: SeaState, cfg: SeaConfig, choice: Tensor) -> SeaState:
    """The predator's step when it chooses `choice` [B], 0 to CHOICES - 1: all turns at full speed, then at half."""
    top, turn = limits(cfg)
    hx, hy, speed = heading(state.predator)
    angle = (choice % TURNS - TURNS // 2).to(hx.dtype) * (turn / (TURNS // 2))
    pace = top / (1 + choice // TURNS).to(hx.dtype)
    return state.with_predator(drive(state.predator, hx, hy, speed, angle, pace))


@dataclass(frozen=True)
class LearnedPredator:
    """Its network, and the shape that it was made with."""

    net: ActorCritic
    hidden: tuple[int, ...]
    step: int = 0

    def step_in(self, cfg: SeaConfig) -> PredatorStep:
        """Its move in a sea: the likeliest choice."""

        def move(state: SeaState) -> SeaState:
            with torch.no_grad():
                return obey(state, cfg, self.net.logits(look(state, cfg)).argmax(-1))

        return move


def make_predator(hidden: Sequence[int], generator: torch.Generator | None = None) -> ActorCritic:
    return ActorCritic(INPUTS, (CHOICES,), tuple(hidden), activation="relu", generator=generator)


def save_predator(predator: LearnedPredator, path: Path) -> None:
    weights = {name: value.cpu() for name, value in predator.net.state_dict().items()}
    save_checkpoint(path, KIND, predator.step, {"hidden": list(predator.hidden), "net": weights})


def load_predator(path: Path, device: torch.device | str = "cpu") -> LearnedPredator:
    checkpoint = load_checkpoint(path, KIND)
    with building(path, "a predator"):
        hidden = tuple(int(size) for size in checkpoint.state["hidden"])
        net = make_predator(hidden)
        net.load_state_dict(checkpoint.state["net"])
        return LearnedPredator(net.to(device).eval(), hidden, checkpoint.step)


def learned_step(cfg: SeaConfig) -> PredatorStep:
    """The move of the predator in the file that `cfg.predator_policy` names, on whatever device the sea is."""

    def move(state: SeaState) -> SeaState:
        return _step_on(cfg, str(state.x.device))(state)

    _step_on(cfg, "cpu")  # a file that is missing or damaged is refused now
    return move


@lru_cache(maxsize=8)
def _step_on(cfg: SeaConfig, device: str) -> PredatorStep:
    return load_predator(Path(cfg.predator_policy), device).step_in(cfg)
