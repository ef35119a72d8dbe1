"""`marlab fish school CHECKPOINT`: how a shoal swims together, and whether that pays."""

from __future__ import annotations

from marlab.fish.measure.config import SchoolConfig
from marlab.lab.command import RunCommand

main = RunCommand("fish school", SchoolConfig, "marlab.fish.training.school:school", positional=("checkpoint",))
