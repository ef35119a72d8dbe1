"""Settings of `marlab market habits`; free of torch, so that help comes at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from marlab.lab.checks import at_least, at_most, positive
from marlab.lab.errors import UserError
from marlab.lab.runs.judged import Judged
from marlab.market.online.settings import MOST_WORLDS, RULE
from marlab.market.simulator.seating import EXPERTS, shape_of


@dataclass(frozen=True)
class HabitsConfig:
    """Learn the numbers of rule W: sellers with drawn habits in the vector market, and what their scores tell."""

    COMMON: ClassVar = ("start", "steps", "batches", "markets", "draws", "clones", "opponents", "seed", "device")
    start: str = RULE
    """Where learning begins: rule, or the habits of an earlier run."""
    steps: int = 10
    """How often the centre moves."""
    batches: int = 3
    """Batches of worlds between two moves, each of another shape."""
    markets: int = 64
    """Drawn markets of a batch."""
    draws: int = 8
    """Worlds of each market: one plays the rule, one the centre, the others habits drawn around it."""
    shapes: tuple[str, ...] = ("3x4", "4x3", "2x6")
    """Levels x factories of a level, in turn."""
    days: int = 50
    """Days of a world."""
    clones: Path | None = None
    """File of cloned experts (`marlab market clone`). Default: those that come with the package."""
    opponents: tuple[str, ...] = EXPERTS
    """Who sits in the other seats, drawn for every market: clones or built-in agents."""
    spread: float = 1.0
    """How far habits are drawn from the centre, in their usual spreads."""
    share: float = 0.15
    """Share of the habits that differ from the centre's in a seller."""
    reach: float = 0.6
    """How far a habit may move in one step, in its spread."""
    memory: float = 0.6
    """What a batch counts after every step that came after it."""
    seed: int = 0
    device: str = "auto"
    """cpu, cuda, cuda:N or auto."""

    def __post_init__(self) -> None:
        at_least(self, 1, "steps", "batches", "markets")
        at_least(self, 4, "draws")
        at_least(self, 0, "seed")
        at_least(self, 5, "days")
        at_most(self, 1000, "days", "draws", "batches")
        at_most(self, MOST_WORLDS, "markets", "steps")
        positive(self, "spread", "reach")
        for name in ("memory", "share"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} is {getattr(self, name)}, expected a share from 0 to 1.")
        if not self.opponents:
            raise UserError("opponents is empty, expected the names of clones or built-in agents.")
        for shape in self.shapes:
            if shape_of(shape) is None:
                raise UserError("Worlds of official shape are not drawn here: give shapes such as 3x4.")

    @property
    def judged_by(self) -> Judged:
        """What the centre earns more than the rule, in the vector market."""
        return Judged(("learner minus rule",), "habits/gain", "higher")
