from __future__ import annotations

from marlab.fish.commands.selfplay import main
from marlab.fish.training.selfplay_config import SelfPlayConfig


def test_the_command_takes_the_settings() -> None:
    assert main.config is SelfPlayConfig
