from __future__ import annotations

from marlab.fish.commands.school import main
from marlab.fish.measure.config import SchoolConfig


def test_the_command_takes_the_settings() -> None:
    assert main.config is SchoolConfig and main.positional == ("checkpoint",)
