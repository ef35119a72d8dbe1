from __future__ import annotations

from marlab.fish.commands.suite import main
from marlab.fish.measure.config import SuiteConfig


def test_the_command_takes_the_settings() -> None:
    assert main.config is SuiteConfig and main.positional == ("checkpoint",)
