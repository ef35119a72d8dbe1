"""A measured value with its interval, and how it is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Measured:
    """A value with its interval, as `results` in run.json stores it; None means not known."""

    value: Any
    low: float | None = None
    high: float | None = None
    unit: str | None = None
    note: str | None = None

    @property
    def number(self) -> float | None:
        """The value as a finite float, or None where it is a text, missing or not finite."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float | np.number):
            return None
        return float(self.value) if math.isfinite(self.value) else None

    def interval(self) -> str:
        """The interval as text, empty where there is none."""
        if self.low is None or self.high is None:
            return ""
        return f"[{show(self.low)}, {show(self.high)}]"

    def __str__(self) -> str:
        return " ".join(part for part in (show(self.value), self.interval(), self.unit or "") if part)


def measured(stored: Any) -> Measured:
    """A result as run.json holds it (a plain value, or a table with value, low, high, unit, note)."""
    if not isinstance(stored, Mapping):
        return Measured(stored)
    low, high = (_finite(stored.get(key)) for key in ("low", "high"))
    unit, note = (str(stored[key]) if stored.get(key) is not None else None for key in ("unit", "note"))
    return Measured(stored.get("value"), low, high, unit, note)


def _finite(value: Any) -> float | None:
    return Measured(value).number


def show(value: Any) -> str:
    """A value for people: four significant digits for numbers with a fraction, `unknown` for None."""
    if value is None:
        return "unknown"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        number = float(value)
        if number.is_integer() and abs(number) < 1e6:
            return str(int(number))
        return f"{number:.4g}"
    return str(value)


def written(number: float, digits: int) -> str:
    """A number with fixed digits and a typographic minus; never "-0.00"."""
    return f"{number:z.{digits}f}".replace("-", "\u2212")
