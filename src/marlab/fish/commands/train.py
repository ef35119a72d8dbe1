"""`marlab fish train`: one shared policy, every living fish a sample."""

from __future__ import annotations

from marlab.fish.training.config import IGNORED_FLAGS, OLD_FLAGS, PRESETS, FishTrainConfig
from marlab.lab.command import RunCommand
from marlab.lab.flags import OldFlags

OLD = OldFlags(renamed=OLD_FLAGS, ignored=IGNORED_FLAGS, preset="v32")

main = RunCommand(
    "fish train", FishTrainConfig, "marlab.fish.training.train:train", presets=PRESETS, old=OLD, default="best"
)
