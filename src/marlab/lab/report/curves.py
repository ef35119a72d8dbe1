"""Recorded metrics as lines to draw. Letters: S seeds, T records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Line = NDArray[np.float64]
LAST_SHARE = 0.1
"""Part of a training, at its end, that its level is taken over."""
WINDOW = 10
"""Records whose mean counts as a level that a training reached."""


def column(rows: Sequence[Mapping[str, Any]], name: str) -> Line:
    """[T] one metric of all records; NaN where it is missing or not a number."""
    return np.array([_number(row.get(name)) for row in rows], dtype=float)


def seed_columns(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int], name: str) -> Line:
    """[S, T] one metric of every seed, as `seed_K/NAME` records it; records without it are gaps."""
    return np.array([column(rows, f"seed_{seed}/{name}") for seed in seeds]).reshape(len(seeds), len(rows))


def last(line: Line) -> Line:
    """The last tenth [..., T] of a training."""
    return line[..., -max(1, round(LAST_SHARE * line.shape[-1])) :]


def level(line: Line) -> tuple[float, float]:
    """(highest mean over some records, mean of the last tenth) of what is known of a line [T]; NaN if nothing is.

    The end counts as one of the means that may be the highest: of a short line it is over fewer records.
    """
    known = line[np.isfinite(line)]
    if not len(known):
        return float("nan"), float("nan")
    window = min(WINDOW, len(known))
    end = float(last(known).mean())
    return max(float(np.convolve(known, np.ones(window) / window, "valid").max()), end), end


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
