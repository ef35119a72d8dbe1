"""Settings of `marlab market beliefs`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from marlab.lab.checks import at_least, at_most, positive, share
from marlab.lab.errors import UserError
from marlab.lab.runs.judged import Judged


@dataclass(frozen=True)
class BeliefsConfig:
    """Fit an observer that says who a partner may be, and hold it against worlds it did not see."""

    KIND: ClassVar = "beliefs"
    COMMON: ClassVar = ("types", "units", "seed", "device")

    recorded: Path = Path()
    """Folder of recorded worlds (.npz, as `marlab market clone` and `marlab market verify --keep` write them)."""
    types: tuple[str, ...] = ()
    """Class names of the agents to tell apart; default: everybody who plays in a tenth of the worlds. Others are
    strangers: nothing is learnt of them, and tables say whether they are taken for strangers."""
    validation: float = 0.1
    """Share of the worlds that decide how much an answer counts."""
    held_out: float = 0.2
    """Share of the worlds that are never learnt from, for the tables."""
    share: float = 1.0
    """Share of all answers that is used."""
    width: int = 64
    """Units of the network's two layers."""
    units: int = 40
    """Units of fitting."""
    steps: int = 100
    """Steps of a unit."""
    batch: int = 2048
    """Answers of a step."""
    lr: float = 4e-3
    """Rate of learning at the beginning; it falls to zero."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N."""
    seed: int = 0

    @property
    def judged_by(self) -> Judged:
        """What tells runs apart."""
        return Judged(("probability of the true type",), "validation/loss", "higher")

    def __post_init__(self) -> None:
        at_least(self, 1, "units", "steps", "batch", "width")
        at_most(self, 16_384, "width")
        at_least(self, 0, "seed")
        positive(self, "lr", "share")
        share(self, "validation", "held_out", "share")
        if self.validation + self.held_out > 0.9:
            raise UserError("validation and held_out leave less than a tenth of the worlds to learn from.")
        twice = [name for name in self.types if self.types.count(name) > 1]
        if twice:
            raise UserError(f"{twice[0]} is named twice among the types.")
