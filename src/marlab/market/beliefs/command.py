"""`marlab market beliefs`: its flags. `beliefs` does the work."""

from __future__ import annotations

from marlab.lab.command import RunCommand
from marlab.market.beliefs.settings import BeliefsConfig

main = RunCommand(
    "market beliefs", BeliefsConfig, "marlab.market.beliefs.beliefs:beliefs", positional=("recorded",)
)  # fmt: skip
