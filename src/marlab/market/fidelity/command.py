"""`marlab market fidelity`: its flags. `work` does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from marlab.lab.command import RunCommand
from marlab.lab.engine.tasks import EngineFlags, config_of
from marlab.market.fidelity.plan import FidelityConfig


@dataclass(frozen=True)
class FidelityCommand(EngineFlags, FidelityConfig):
    """Seat known sellers in both markets and compare how they rank."""

    resumable: ClassVar = True

    clones: Path | None = None
    """File of clones that play the population in the vector market; default: those that come with the package."""
    real: Path | None = None
    """Scores of the simulator from another machine (real.json of a run with the same settings), taken over at first."""
    device: str = "cpu"
    """Where the vector market runs: cpu, cuda or auto."""

    def run_config(self) -> FidelityConfig:
        """What decides the results: the part that a resumed run must repeat."""
        return config_of(self, FidelityConfig)


main = RunCommand("market fidelity", FidelityCommand, "marlab.market.fidelity.work:fidelity")
