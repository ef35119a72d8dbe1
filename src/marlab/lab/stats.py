"""Means and shares with 95 % intervals, and how a measured value is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z95 = NormalDist().inv_cdf(0.975)


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


def mean_interval(samples: ArrayLike, axis: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Mean over `axis` with Student's 95 % interval (mean, low, high); NaN samples do not count.

    Where fewer than two samples remain there is no interval: low and high are NaN there.
    """
    values = np.asarray(samples, dtype=float)
    present = ~np.isnan(values)
    count = present.sum(axis=axis)
    total = np.where(present, values, 0.0).sum(axis=axis)
    mean = np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
    deviation = np.where(present, values - np.expand_dims(mean, axis), 0.0)
    spread = np.divide((deviation**2).sum(axis=axis), count - 1, out=np.full(np.shape(total), np.nan), where=count > 1)
    half = _student_95(np.maximum(count - 1, 1)) * np.sqrt(spread / np.maximum(count, 1))
    return mean, mean - half, mean + half


def share_interval(hits: int, trials: int) -> tuple[float, float, float]:
    """Share with Wilson's 95 % interval (share, low, high), honest also near 0 and 1."""
    if not 0 <= hits <= trials or trials == 0:
        raise ValueError(f"{hits} hits in {trials} trials is not a share")
    share, z2 = hits / trials, Z95**2
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z95 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return share, max(0.0, middle - half), min(1.0, middle + half)


RESAMPLES = 2000


def grouped_resamples(groups: NDArray[np.integer], resamples: int = RESAMPLES) -> NDArray[np.int64]:
    """[M, R'] places in `groups` [R] drawn with replacement: first whole groups, then the members of each drawn one.

    A group is what varies most, such as a training seed. The draws depend on the groups only, so all quantities of
    the same rows are resampled alike and differences stay paired. Groups count with the size of the smallest.
    """
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    size = min(len(places) for places in members)
    table = np.stack([places[:size] for places in members])  # [groups, members]
    chosen = rng.integers(len(members), size=(resamples, len(members)))
    place = rng.integers(size, size=(resamples, len(members), size))
    return table[chosen[:, :, None], place].reshape(resamples, -1)


def grouped_interval(values: NDArray[np.float64], groups: NDArray[np.integer], resamples: int = RESAMPLES) -> Measured:
    """Mean of values [R] with its 95 % bootstrap interval over groups [R] and their members."""
    return percentiles(float(values.mean()), values[grouped_resamples(groups, resamples)].mean(1))


def percentiles(value: float, resampled: NDArray[np.float64]) -> Measured:
    """A value with the 95 % interval of its resamples [M]; NaN resamples do not count."""
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return Measured(value, float(low), float(high))


# Two-sided 95 % points of Student's t for 1 to 30 degrees of freedom; beyond, the expansion around the normal is
# exact to four digits. A table spares the core a dependency on scipy.
_STUDENT = np.array([
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
])  # fmt: skip


def _student_95(freedom: NDArray[Any]) -> NDArray[Any]:
    v = np.asarray(freedom, dtype=float)
    z = Z95
    far = z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    near = _STUDENT[np.clip(np.asarray(freedom, dtype=int), 1, len(_STUDENT)) - 1]
    return np.where(v <= len(_STUDENT), near, far)
