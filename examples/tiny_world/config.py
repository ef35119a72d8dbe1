"""The settings. The text under a field is its help; wrong values are refused before any work starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from marlab.lab.checks import positive
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.runs.judged import Judged


@dataclass(frozen=True)
class TinyConfig:
    """Two walkers on a ring, and how they learn."""

    judged_by: ClassVar = Judged(("steps too many",), "episode/length", "lower")  # for `marlab compare` and `sweep`

    n_cells: int = 15
    """Cells of the ring; an odd number, so that one way round is always the shorter one."""
    time_limit_steps: int = 30
    """An episode is cut after this many steps."""
    rings: int = 64
    """Rings that run side by side."""
    iterations: int = 40
    """Rollouts, each with its update."""
    hidden: tuple[int, ...] = (32,)
    """Hidden layers of policy and value network."""
    ppo: PPOConfig = field(
        default_factory=lambda: PPOConfig(n_steps=32, batch_size=512, learning_rate=3e-3, gamma=0.95)
    )
    """How PPO learns."""
    seed: int = 0
    """Seed of everything random."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        if self.n_cells < 3 or self.n_cells % 2 == 0:
            raise UserError(f"n_cells is {self.n_cells}, expected an odd number of at least 3.")
        positive(self, "time_limit_steps", "rings", "iterations")
