"""`marlab market online`: its flags. `work` does the work."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.command import RunCommand
from marlab.market.online.settings import OnlineConfig

PRESETS = Path(__file__).parents[1] / "presets" / "online"

main = RunCommand("market online", OnlineConfig, "marlab.market.online.work:learn", presets=PRESETS)
