"""`marlab market online`: its flags. `work` does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from marlab.lab.command import RunCommand
from marlab.lab.engine.tasks import EngineFlags, config_of
from marlab.market.online.settings import OnlineConfig

PRESETS = Path(__file__).parents[1] / "presets" / "online"


@dataclass(frozen=True)
class OnlineCommand(EngineFlags, OnlineConfig):
    """Learn to sell in the vector market: a network around rule W that begins as rule W."""

    def run_config(self) -> OnlineConfig:
        """What decides the results."""
        return config_of(self, OnlineConfig)


main = RunCommand("market online", OnlineCommand, "marlab.market.online.work:learn", presets=PRESETS)
