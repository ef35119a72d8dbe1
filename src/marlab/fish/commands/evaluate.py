"""`marlab fish eval CHECKPOINT`: a trained shoal on held-out arenas, beside the scripted ladder and the ceiling."""

from __future__ import annotations

from marlab.fish.measure.config import EvalConfig
from marlab.lab.command import RunCommand

main = RunCommand("fish eval", EvalConfig, "marlab.fish.training.evaluate:evaluate", positional=("checkpoint",))
