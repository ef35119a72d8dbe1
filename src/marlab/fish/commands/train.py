"""`marlab fish train`: one shared policy, every living fish a sample."""

from __future__ import annotations

from marlab.fish.training.config import OLD_FLAGS, PRESETS, FishTrainConfig
from marlab.lab.command import RunCommand
from marlab.lab.flags import OldFlags

main = RunCommand(
    "fish train", FishTrainConfig, "marlab.fish.training.train:train", presets=PRESETS, old=OldFlags(OLD_FLAGS)
)
