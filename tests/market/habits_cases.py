"""A search for habits that takes a second."""

from __future__ import annotations

from typing import Any

from marlab.market.habits.settings import HabitsConfig


def tiny(**changes: Any) -> HabitsConfig:
    """Two markets of four worlds, five days, built-in agents around."""
    values: dict[str, Any] = {
        "steps": 2, "batches": 1, "markets": 2, "draws": 4, "days": 5, "shapes": ("2x3", "3x3"),
        "opponents": ("RandomStdAgent", "SyncRandomStdAgent"), "device": "cpu",
    }  # fmt: skip
    return HabitsConfig(**values | changes)
