"""`marlab fish suite CHECKPOINT`: a trained shoal in seas that differ in one thing each."""

from __future__ import annotations

from marlab.fish.measure.config import SuiteConfig
from marlab.lab.command import RunCommand

main = RunCommand("fish suite", SuiteConfig, "marlab.fish.training.suite:suite", positional=("checkpoint",))
