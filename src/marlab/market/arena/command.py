"""`marlab market play`: its flags. `play` does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from marlab.lab.command import RunCommand
from marlab.lab.engine.tasks import EngineFlags, config_of
from marlab.market.arena.plan import PlayConfig

PRESETS = Path(__file__).parents[1] / "presets" / "play"


@dataclass(frozen=True)
class PlayCommand(EngineFlags, PlayConfig):
    """`marlab market play`: the tournament, and where it is played (which changes no result)."""

    official: bool = False
    """Run the league's own anac2024_std with these agents instead, with its scores."""

    keep_logs: bool = False
    """Keep what a replay needs in logs/: the log of each world, and the decision logs of LitaAgentHRL."""

    details: bool = False
    """Print every table, not only the scores; all of them are in tables.md in any case."""

    def run_config(self) -> PlayConfig:
        """What decides the results: the part that a resumed tournament must repeat."""
        return config_of(self, PlayConfig)


main = RunCommand("market play", PlayCommand, "marlab.market.arena.play:play", presets=PRESETS)
