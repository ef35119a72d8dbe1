"""Confidence bounds of a share, without SciPy: Wilson's score interval and Clopper and Pearson's exact bound."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

import numpy as np

BoundMethod = Literal["wilson", "clopper_pearson"]


def wilson_interval(hits: float, trials: float, level: float = 0.95) -> tuple[float, float]:
    """Two-sided score interval of a share; `trials` may be an effective (fractional) sample size."""
    return _wilson(hits, trials, NormalDist().inv_cdf(0.5 + level / 2))


def upper_bound(hits: float, trials: float, level: float, method: BoundMethod = "wilson") -> float:
    """One-sided upper bound: the true share lies below it with probability `level`."""
    if trials <= 0:
        return 1.0
    if method == "clopper_pearson":
        return clopper_pearson_upper(math.ceil(hits), round(trials), level)
    return _wilson(hits, trials, NormalDist().inv_cdf(level))[1]


def lower_bound(hits: float, trials: float, level: float, method: BoundMethod = "wilson") -> float:
    """One-sided lower bound: the true share lies above it with probability `level`."""
    return 1.0 - upper_bound(trials - hits, trials, level, method)


def clopper_pearson_upper(hits: int, trials: int, level: float) -> float:
    """The share at which seeing at most `hits` of `trials` would have probability 1 - level."""
    if trials <= 0 or hits >= trials:
        return 1.0
    low, high = max(hits, 0) / trials, 1.0
    for _ in range(60):  # halving 60 times is below the spacing of doubles
        middle = (low + high) / 2
        if binomial_cdf(hits, trials, middle) > 1.0 - level:
            low = middle
        else:
            high = middle
    return high


def binomial_cdf(hits: float, trials: int, share: float) -> float:
    """P(X <= hits) for `trials` independent draws that each hit with probability `share`."""
    k = math.floor(hits)
    if k < 0:
        return 0.0
    if k >= trials or share <= 0.0:
        return 1.0
    if share >= 1.0:
        return 0.0
    j = np.arange(1, k + 1)
    # log of the k+1 terms C(n,j) p^j (1-p)^(n-j), each from the one before
    steps = np.log((trials - j + 1) / j) + math.log(share) - math.log1p(-share)
    logs = trials * math.log1p(-share) + np.concatenate(([0.0], np.cumsum(steps)))
    top = float(logs.max())
    return min(1.0, math.exp(top) * float(np.exp(logs - top).sum()))


def _wilson(hits: float, trials: float, z: float) -> tuple[float, float]:
    if trials <= 0:
        return 0.0, 1.0
    share = min(max(hits / trials, 0.0), 1.0)
    spread = 1.0 + z * z / trials
    middle = (share + z * z / (2 * trials)) / spread
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / spread
    return max(0.0, middle - half), min(1.0, middle + half)
