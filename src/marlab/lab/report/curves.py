"""Recorded metrics as lines to draw. Letters: S seeds, T records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Line = NDArray[np.float64]


def column(rows: Sequence[Mapping[str, Any]], name: str) -> Line:
    """[T] one metric of all records; NaN where it is missing or not a number."""
    return np.array([_number(row.get(name)) for row in rows], dtype=float)


def seed_columns(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int], name: str) -> Line:
    """[S, T] one metric of every seed, as `seed_K/NAME` records it; records without it are gaps."""
    return np.array([column(rows, f"seed_{seed}/{name}") for seed in seeds]).reshape(len(seeds), len(rows))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
