"""Settings that mean nothing are refused before anything is played."""

from __future__ import annotations

from typing import Any

import pytest

from marlab.lab.errors import UserError
from tests.market.habits_cases import tiny


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0}, {"draws": 3}, {"memory": 1.5}, {"share": -0.1}, {"spread": 0.0}, {"opponents": ()},
        {"shapes": ("official",)}, {"shapes": ("3 by 4",)}, {"days": 2}, {"seed": -1},
    ],
)  # fmt: skip
def test_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        tiny(**changes)
