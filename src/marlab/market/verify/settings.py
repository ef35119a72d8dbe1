"""Settings of `marlab market verify` and `marlab market configs`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from marlab.lab.checks import at_least, at_most
from marlab.lab.engine.tasks import EngineFlags
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class VerifyConfig(EngineFlags):
    """Play fresh worlds in the simulator and hold the vector market against them, level by level."""

    worlds: int = 12
    """Worlds to play and to replay; shapes and populations take turns."""
    days: tuple[int, int] = (10, 20)
    """Fewest and most days of a world."""
    policy_worlds: int = 6
    """Worlds of each built-in agent alone whose moves and scores are compared with the array version; 0: none."""
    populations: tuple[str, ...] = ()
    """Who plays the worlds, by name, in turn; default: all populations. Slow ones are those with rule W."""
    seed: int = 0
    keep: Path | None = None
    """Folder that gets every recorded world as a file of its own; worlds that it holds already are not played again."""
    recorded: Path | None = None
    """Folder of recorded worlds, as `keep` writes them: look at these instead of playing fresh ones."""

    def __post_init__(self) -> None:
        at_least(self, 1, "worlds")
        at_least(self, 0, "policy_worlds", "seed")
        at_most(self, 100_000, "worlds", "policy_worlds")
        low, high = self.days
        if not 5 <= low <= high <= 10_000:
            raise UserError(f"days is {self.days}, expected two numbers from 5 to 10,000, the smaller one first.")


@dataclass(frozen=True)
class ConfigsConfig:
    """Draw market configs with the simulator and write them to one file for the vector market."""

    file: Path
    """The .npz file to write."""
    count: int = 200
    """Configs to draw."""
    levels: tuple[int, int] = (2, 4)
    factories: tuple[int, int] = (3, 8)
    """Factories of a level."""
    days: tuple[int, int] = (50, 200)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.file.is_dir():
            raise UserError(f"{self.file} is a folder; name the .npz file to write.")
        at_least(self, 1, "count")
        at_most(self, 100_000, "count")
        at_least(self, 0, "seed")
        for name, least, most in (("levels", 2, 100), ("factories", 1, 100), ("days", 5, 10_000)):
            low, high = getattr(self, name)
            if not least <= low <= high <= most:
                expected = f"two numbers from {least} to {most:,}, the smaller first"
                raise UserError(f"{name} is {(low, high)}, expected {expected}.")
