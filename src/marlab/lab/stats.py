"""Measured values and their intervals: Student, Welch, Wilson, Clopper and Pearson, bootstraps, and one that may be
looked at at any time.

All intervals are for 95 % unless a level is asked for. What scipy has comes from scipy, which is imported when it is
called: `--help` and lists of runs need not wait for it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
    low, high = (Measured(stored.get(key)).number for key in ("low", "high"))
    unit, note = (str(stored[key]) if stored.get(key) is not None else None for key in ("unit", "note"))
    return Measured(stored.get("value"), low, high, unit, note)


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


RESAMPLES, GROUP_RESAMPLES = 10_000, 2000
EFFECT = 1.0
"""Spread, in standard deviations, of the differences that the confidence sequence is made for."""
BoundMethod = Literal["wilson", "clopper_pearson"]
Interval = tuple[float, float]

# --- means --------------------------------------------------------------------------------------------------


def mean_interval(
    samples: ArrayLike, axis: int = 0, level: float = 0.95
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Mean over `axis` with Student's interval (mean, low, high); NaN samples do not count.

    Where fewer than two samples remain there is no interval: low and high are NaN there.
    """
    from scipy.special import stdtrit

    values = np.asarray(samples, dtype=float)
    present = ~np.isnan(values)
    count = present.sum(axis=axis)
    total = np.where(present, values, 0.0).sum(axis=axis)
    mean = np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
    deviation = np.where(present, values - np.expand_dims(mean, axis), 0.0)
    spread = np.divide((deviation**2).sum(axis=axis), count - 1, out=np.full(np.shape(total), np.nan), where=count > 1)
    half = stdtrit(np.maximum(count - 1, 1), 0.5 + level / 2) * np.sqrt(spread / np.maximum(count, 1))
    return mean, mean - half, mean + half


def student_quantiles(most: int, level: float = 0.95) -> list[float]:
    """What the standard error of 2, 3, ... `most` values is multiplied by for Student's interval of their mean."""
    from scipy.special import stdtrit

    return [float(stdtrit(count - 1, 0.5 + level / 2)) for count in range(2, most + 1)]


def student(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's interval of the mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    _, low, high = mean_interval(values, level=level)
    return float(low), float(high)


def welch(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Interval | None:
    """Welch's interval of mean(a) - mean(b), for samples that cannot be paired; None where one has fewer than two."""
    if len(a) < 2 or len(b) < 2:
        return None
    gap = float(np.mean(a) - np.mean(b))
    if np.ptp(a) == 0 and np.ptp(b) == 0:  # no spread at all: nothing to divide by
        return gap, gap
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one sample may have no spread: it adds none to the interval
        found = ttest_ind(a, b, equal_var=False).confidence_interval(level)
    return float(found.low), float(found.high)


def confidence_sequence(values: Sequence[float], alpha: float) -> Interval | None:
    """An interval for the mean that may be looked at after every value: it is wrong at any look with chance `alpha`.

    The Bayes factor of "standardised mean ~ normal(0, EFFECT)" against "mean is m", with the scale integrated out, is
    a martingale for normal values when m is right, so it passes 1 / alpha at any time with chance alpha at most. The
    interval holds every m that it has not passed for. It is unlimited while there are too few values.
    """
    n = len(values)
    if n < 2:
        return None
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    grown = 1 + n * EFFECT**2
    ratio = (math.sqrt(grown) / alpha) ** (2 / n)  # of (1 + x) / (1 + x / grown), where x = t^2 / (n - 1)
    if ratio >= grown:
        return -math.inf, math.inf
    x = (ratio - 1) / (1 - ratio / grown)
    half = math.sqrt((n - 1) * x) * spread / math.sqrt(n)
    return mean - half, mean + half


# --- shares -------------------------------------------------------------------------------------------------


def wilson(hits: float, trials: float, level: float = 0.95) -> Interval:
    """Score interval of a share, honest also near 0 and 1; `trials` may be an effective (fractional) sample size."""
    return _wilson(hits, trials, NormalDist().inv_cdf(0.5 + level / 2))


def share_interval(hits: int, trials: int) -> tuple[float, float, float]:
    """A share with Wilson's interval (share, low, high)."""
    if not 0 <= hits <= trials or trials == 0:
        raise ValueError(f"{hits} hits in {trials} trials is not a share")
    return hits / trials, *wilson(hits, trials)


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
    from scipy.special import betaincinv

    if trials <= 0 or hits >= trials:
        return 1.0
    known = max(hits, 0)
    return float(betaincinv(known + 1, trials - known, level))


def binomial_cdf(hits: float, trials: int, share: float) -> float:
    """P(X <= hits) for `trials` independent draws that each hit with probability `share`."""
    from scipy.special import bdtr

    k = math.floor(hits)
    if k < 0:
        return 0.0
    if k >= trials or share <= 0.0:
        return 1.0
    return 0.0 if share >= 1.0 else float(bdtr(k, trials, share))


def _wilson(hits: float, trials: float, z: float) -> Interval:
    # by hand: scipy's takes whole numbers only, and effective sample sizes are none
    if trials <= 0:
        return 0.0, 1.0
    share = min(max(hits / trials, 0.0), 1.0)
    spread = 1.0 + z * z / trials
    middle = (share + z * z / (2 * trials)) / spread
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / spread
    return max(0.0, middle - half), min(1.0, middle + half)


# --- resampling ---------------------------------------------------------------------------------------------


def bootstrap(
    values: Sequence[float], seed: int = 0, statistic: Callable[..., Any] = np.mean, level: float = 0.95
) -> Interval | None:
    """Percentile interval of the mean (or of another statistic with an `axis`) over resampled values; None for fewer
    than two."""
    if len(values) < 2:
        return None
    if np.ptp(values) == 0:  # scipy warns of what is plain here
        return float(values[0]), float(values[0])
    from scipy import stats

    found = stats.bootstrap(
        (np.asarray(values, dtype=float),), statistic, n_resamples=RESAMPLES, method="percentile",
        confidence_level=level, vectorized=True, rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return float(found.low), float(found.high)


def iqm(values: ArrayLike, axis: int = -1) -> Any:
    """The interquartile mean: of the middle half of the values, so that a few lucky or failed ones do not decide."""
    from scipy.stats import trim_mean

    return trim_mean(np.asarray(values, dtype=float), 0.25, axis=axis)


def grouped_resamples(groups: NDArray[np.integer], resamples: int = GROUP_RESAMPLES) -> NDArray[np.int64]:
    """[M, R'] places drawn with replacement: first the groups, then the places of each drawn group.

    groups [R]: for example the training seed of each of R runs. The draws depend on the groups only, so every quantity
    of the same runs is resampled alike.
    """
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    size = min(len(p) for p in places)
    table = np.stack([p[:size] for p in places])  # [groups, places]
    chosen = rng.integers(len(places), size=(resamples, len(places)))
    place = rng.integers(size, size=(resamples, len(places), size))
    return table[chosen[:, :, None], place].reshape(resamples, -1)


def grouped_interval(
    values: NDArray[np.float64], groups: NDArray[np.integer], resamples: int = GROUP_RESAMPLES
) -> Measured:
    """Mean of values [R] with its bootstrap interval, resampled group by group."""
    return percentiles(float(values.mean()), values[grouped_resamples(groups, resamples)].mean(1))


def percentiles(value: float, resampled: NDArray[np.float64]) -> Measured:
    """A value with the middle 95 % of what resampling made of it."""
    return Measured(value, *middle_95(resampled))


def ratio_interval(
    groups: NDArray[np.integer],
    measure: Callable[[Any, Any], Any],
    total: ArrayLike,
    count: ArrayLike,
    resamples: int = 500,
) -> Interval:
    """Interval of measure(sum of total, sum of count) when whole groups are resampled; all three are [N] rows."""
    if not len(groups):
        return float("nan"), float("nan")
    sums = np.bincount(groups, np.asarray(total, np.float64))
    counts = np.bincount(groups, np.asarray(count, np.float64))
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), resamples)  # [M, groups]
    return middle_95(measure(drawn @ sums, drawn @ counts))


def middle_95(resamples: ArrayLike) -> Interval:
    """The middle 95 % of resampled values; NaN ones do not count."""
    low, high = np.nanpercentile(np.asarray(resamples, dtype=float), [2.5, 97.5])
    return float(low), float(high)
