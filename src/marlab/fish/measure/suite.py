"""How far a policy carries: the same policy in seas that differ in one thing each, beside the reactive scripts.

Fish from 10 to 1,000, predator speed from half to three times, vision from half to twice, and actions that come late.
Every cell is one batch of seeded arenas that all players share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.fish.measure.policies import Policy, play
from marlab.fish.measure.schooling import Watcher
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.constants import EPISODE_STEPS, HOLD
from marlab.fish.sea.reset import seeded_reset

FISH = (10, 32, 100, 320, 1000)
SPEEDS = (0.5, 1.0, 1.5, 2.0, 3.0)
VISIONS = (0.5, 1.0, 1.5, 2.0)
DELAYS = (0, 1, 2, 4)
EPISODE = EPISODE_STEPS
"""Steps that every cell is played."""
FISH_PER_CELL = 3200
"""Cells with many fish have fewer arenas, at least four."""


class Cell(NamedTuple):
    """One sea of the suite."""

    axis: str  # fish, predator speed, vision or delay
    value: float
    cfg: SeaConfig
    delay: int = 0

    @property
    def name(self) -> str:
        return f"{self.axis} {self.value:g}"


def cells(cfg: SeaConfig) -> Iterator[Cell]:
    """The sea itself first, then one change at a time."""
    yield Cell("the sea itself", 0, cfg)
    for fish in FISH:
        yield Cell("fish", fish, replace(cfg, num_fish=fish))
    for factor in SPEEDS:
        yield Cell("predator speed", factor, replace(cfg, predator_speed_factor=cfg.predator_speed_factor * factor))
    for factor in VISIONS:
        yield Cell("vision", factor, replace(cfg, vision_radius=cfg.vision_radius * factor))
    for delay in DELAYS:
        yield Cell("delay", delay, cfg, delay)


def delayed(policy: Policy, steps: int) -> Policy:
    """The policy whose actions are obeyed `steps` steps later; until then everybody holds. For one episode."""
    if not steps:
        return policy
    waiting: deque[Tensor] = deque()

    def late(obs: Tensor) -> Tensor:
        chosen = policy(obs)
        waiting.append(chosen)
        return waiting.popleft() if len(waiting) > steps else torch.full_like(chosen, HOLD)

    return late


def arenas_of(cell: Cell, most: int) -> int:
    return max(4, min(most, FISH_PER_CELL // cell.cfg.num_fish))


@torch.no_grad()
def measure(
    cell: Cell, make: Callable[[], Policy], seeds: list[int], device: torch.device | str, watched: bool
) -> dict[str, Any]:
    """Survival per arena; where `watched` also how the shoal swam and at which angles it fled."""
    start, _ = seeded_reset(seeds, cell.cfg, device=device)
    watcher = Watcher() if watched else None
    played = play(start, delayed(make(), cell.delay), cell.cfg, EPISODE, watcher)
    told: dict[str, Any] = {"survival": played.survival.tolist()}
    if watcher is not None:
        told |= {"schooling": watcher.means(), "escape_angles": watcher.angles.tolist()}
    return told
