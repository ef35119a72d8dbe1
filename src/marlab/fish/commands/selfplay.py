"""`marlab fish selfplay`: a predator and a shoal learn in turns, against each other's newest and past networks."""

from __future__ import annotations

from marlab.fish.training.selfplay_config import SelfPlayConfig
from marlab.lab.command import RunCommand

main = RunCommand("fish selfplay", SelfPlayConfig, "marlab.fish.training.selfplay:selfplay")
