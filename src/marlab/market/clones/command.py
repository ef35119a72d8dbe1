"""`marlab market clone`: its flags. `clone` does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from marlab.lab.command import RunCommand
from marlab.lab.engine.tasks import EngineFlags, config_of
from marlab.market.clones.settings import CloneConfig

PRESETS = Path(__file__).parents[1] / "presets" / "clone"


@dataclass(frozen=True)
class CloneCommand(EngineFlags, CloneConfig):
    """Fit small networks that answer as recorded agents did: opponents for the vector market."""

    def run_config(self) -> CloneConfig:
        """What decides the results."""
        return config_of(self, CloneConfig)


main = RunCommand(
    "market clone", CloneCommand, "marlab.market.clones.clone:clone", presets=PRESETS, positional=("experts...",)
)
