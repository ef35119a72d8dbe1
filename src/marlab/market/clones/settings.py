"""Settings of `marlab market clone`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from marlab.lab.checks import at_least, at_most, positive, share
from marlab.lab.errors import UserError
from marlab.lab.runs.judged import Judged
from marlab.market.simulator.seating import ENTRANTS, EXPERTS, OURS, shape_of

REFERENCE = (*EXPERTS, OURS)


@dataclass(frozen=True)
class CloneConfig:
    """Whose clones are made, from which worlds, and how."""

    KIND: ClassVar = "clones"
    COMMON: ClassVar = ("recorded", "worlds", "days", "units", "seed", "device")

    experts: tuple[str, ...] = ENTRANTS
    """Agents to clone, by their class names; by default the entrants of the reference population."""
    recorded: Path | None = None
    """Folder of recorded worlds, as `marlab market collect` or `verify --keep` leave them, to fit on."""
    worlds: int = 48
    """Worlds to play in the simulator, where no folder is given."""
    days: tuple[int, int] = (50, 50)
    """Fewest and most days of a world that is played."""
    shapes: tuple[str, ...] = ("2x6", "3x4", "4x3")
    """Levels x factories of a level, in turn from world to world."""
    population: tuple[str, ...] = REFERENCE
    """Who plays, in rotation; experts are always among them."""
    validation: float = 0.1
    """Share of the worlds that decide which of the fitted weights are kept."""
    held_out: float = 0.15
    """Share of the worlds that are never fitted, for the tables."""
    most: int = 400_000
    """Decisions of one expert that are used at most."""
    hidden: int = 128
    """Width of the networks."""
    units: int = 40
    """Units of fitting; the best weights of each expert by the end of any unit are kept."""
    steps: int = 50
    """Steps of a unit."""
    batch: int = 256
    """Decisions of every expert in a step."""
    lr: float = 2e-3
    """Rate of learning at the beginning; it falls to zero."""
    decay: float = 0.02
    """Weight decay."""
    start: Path | None = None
    """Clones to begin with, a file of an earlier fit; worlds that it was fitted on are fitted again, as far as others
    are left to validate with and to hold out. Default: small random weights."""
    repeats: int = 8
    """Plays of every held-out config by the clones, beside the real world; 0: none."""
    world_timeout: float = 1800.0
    """Seconds after which a world is ended and counted as failed."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""
    seed: int = 0

    @property
    def judged_by(self) -> Judged:
        """What tells runs apart."""
        return Judged(("cross-entropy, held out",), "validation/loss", "lower")

    def __post_init__(self) -> None:
        at_least(self, 1, "units", "steps", "batch", "most", "hidden")
        at_least(self, 3, "worlds")
        at_most(self, 100_000, "worlds", "repeats")
        at_most(self, 4096, "hidden")
        at_least(self, 0, "seed", "repeats", "decay")
        positive(self, "lr", "world_timeout")
        share(self, "validation", "held_out")
        if self.validation + self.held_out > 0.9:
            raise UserError("validation and held_out leave less than a tenth of the worlds to fit on.")
        low, high = self.days
        if not 5 <= low <= high <= 10_000:
            raise UserError(f"days is {self.days}, expected two numbers from 5 to 10,000, the smaller one first.")
        if not self.experts:
            raise UserError("experts is empty, expected the class names of agents to clone.")
        twice = [name for name in self.experts if self.experts.count(name) > 1]
        if twice:
            raise UserError(f"{twice[0]} is named twice among the experts.")
        for shape in self.shapes or ("",):
            if shape_of(shape) is None:
                raise UserError(f"'{shape}' is not a shape, expected LEVELSxFACTORIES from 2x1 to 4x8.")
