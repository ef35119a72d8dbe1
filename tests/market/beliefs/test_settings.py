"""Settings of `marlab market beliefs`."""

from __future__ import annotations

from typing import Any

import pytest

from marlab.lab.errors import UserError
from marlab.market.beliefs.settings import BeliefsConfig


@pytest.mark.parametrize(
    "wrong", [{"units": 0}, {"share": 0.0}, {"held_out": 0.6, "validation": 0.4}, {"types": ("a", "a")}, {"lr": -1.0}]
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        BeliefsConfig(**wrong)
