"""Settings of `marlab market distill`."""

from __future__ import annotations

from typing import Any

import pytest

from marlab.lab.errors import UserError
from marlab.market.distill.settings import DistillConfig


@pytest.mark.parametrize("wrong", [{"sources": ("a", "a")}, {"lr": 0.0}, {"shapes": ("9x9",)}, {"compare_days": 2}])
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        DistillConfig(**wrong)
