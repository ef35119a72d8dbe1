"""The command line of online learning."""

from __future__ import annotations

import pytest

from marlab.market.online.command import PRESETS, main
from marlab.market.online.settings import OnlineConfig


@pytest.mark.parametrize("name", sorted(path.stem for path in PRESETS.glob("*.toml")))
def test_presets_are_configs(name: str) -> None:
    assert isinstance(main.parse(["--preset", name]).config, OnlineConfig)


def test_flags_become_a_config() -> None:
    assert main.parse(["--worlds", "5", "--algo", "ippo"]).config.run_config() == OnlineConfig(worlds=5, algo="ippo")
