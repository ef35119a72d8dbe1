"""Settings of the two commands: what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marlab.lab.errors import UserError
from marlab.market.verify.settings import ConfigsConfig, VerifyConfig


def test_impossible_settings_are_refused() -> None:
    bad: dict[str, Any]
    for bad in (
        {"worlds": 0},
        {"days": (20, 10)},
        {"days": (1, 10)},
        {"seed": -1},
        {"policy_worlds": -1},
        {"worlds": 10**9},
    ):
        with pytest.raises(UserError, match=next(iter(bad))):
            VerifyConfig(**bad)
    for bad in (
        {"count": 0},
        {"levels": (1, 2)},
        {"factories": (3, 2)},
        {"days": (2, 9)},
        {"count": 10**9},
        {"factories": (3, 10**9)},
    ):
        with pytest.raises(UserError, match=next(iter(bad))):
            ConfigsConfig(Path("c.npz"), **bad)


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        ConfigsConfig(tmp_path)
