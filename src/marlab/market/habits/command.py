"""`marlab market habits`: its flags. `work` does the work."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.command import RunCommand
from marlab.market.habits.settings import HabitsConfig

PRESETS = Path(__file__).parents[1] / "presets" / "habits"

main = RunCommand("market habits", HabitsConfig, "marlab.market.habits.work:learn", presets=PRESETS)
