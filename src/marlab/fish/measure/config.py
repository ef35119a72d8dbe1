"""What an evaluation plays, and against what; free of torch, so that flags and help come at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from marlab.lab.errors import UserError

HELD_OUT_SEED = 20_260_101
"""Seed of the arenas that no training and no probe uses unless it is asked to."""
SCRIPTED = ("forward", "random", "broadcast", "hold", "left", "brake", "flee", "south", "sidestep")
"""Every scripted policy, weakest first."""


@dataclass(frozen=True)
class EvalConfig:
    """Play a checkpoint on held-out arenas, beside the scripted policies and the ceiling."""

    checkpoint: str = ""
    """A model_iter_N.pt, or a run directory (its best model, or the last one)."""
    episodes: int = 200
    """Arenas."""
    fish: int = 96
    """Fish per arena."""
    seed_base: int | None = None
    """Seed of the arenas; none: the held-out set that all evaluations share."""
    sea: Literal["trained", "v32"] = "trained"
    """The sea the policy was trained in, or the one of the v32 defaults, to compare runs of different seas."""
    baselines: bool = True
    """Play the scripted policies on the same arenas too."""
    ceiling: bool = True
    """Bound what any policy could reach on these arenas."""
    film_fish: int = 0
    """Film one more episode with so many fish; 0: no film."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise UserError("Name a checkpoint: marlab fish eval CHECKPOINT.")
        for name in ("episodes", "fish"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}, expected at least 1.")
