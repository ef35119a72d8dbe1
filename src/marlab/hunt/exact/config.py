"""The settings of `marlab hunt check`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from marlab.lab.checks import at_least


@dataclass(frozen=True)
class CheckConfig:
    """How much to simulate."""

    episodes: int = 4096
    """Episodes per population and per focal player and team, and four times as many for the prediction ceilings."""
    layouts: int = 50
    """Starts that are solved exactly, per team."""
    output_dir: Path | None = None
    """Also write every row to check.json in this folder."""

    def __post_init__(self) -> None:
        at_least(self, 2, "episodes", "layouts")
