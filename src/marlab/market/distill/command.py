"""`marlab market distill`: its flags. `distill` does the work."""

from __future__ import annotations

from marlab.lab.command import RunCommand
from marlab.market.distill.settings import DistillConfig

main = RunCommand("market distill", DistillConfig, "marlab.market.distill.distill:distill", positional=("sources...",))
