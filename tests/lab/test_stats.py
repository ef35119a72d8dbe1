"""Intervals against hand numbers, definitions, scipy, and how often they are wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from marlab.lab.stats import (
    EFFECT,
    Measured,
    binomial_cdf,
    bootstrap,
    clopper_pearson_upper,
    confidence_sequence,
    grouped_interval,
    grouped_resamples,
    iqm,
    lower_bound,
    mean_interval,
    measured,
    middle_95,
    ratio_interval,
    share_interval,
    show,
    student,
    student_quantiles,
    upper_bound,
    welch,
    wilson,
    written,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (3, "3"),
        (3.0, "3"),
        (1234567.0, "1.235e+06"),
        (0.123456, "0.1235"),
        (np.float32(0.5), "0.5"),
        (math.nan, "nan"),
        ("a word", "a word"),
    ],
)
def test_show(value: Any, text: str) -> None:
    assert show(value) == text


def test_a_plain_result_and_one_with_everything() -> None:
    assert measured(3) == Measured(3)
    stored = {"value": 0.9, "low": 0.8, "high": 0.95, "unit": "share", "note": "200 games"}
    assert measured(stored) == Measured(0.9, 0.8, 0.95, "share", "200 games")
    assert str(measured(stored)) == "0.9 [0.8, 0.95] share"


def test_what_is_no_number_is_none() -> None:
    assert measured({"value": 1, "low": "?", "high": math.inf}) == Measured(1)
    assert [Measured(v).number for v in (1, np.float32(2), True, "3", None, math.nan)] == [1.0, 2.0, *[None] * 4]
    assert Measured(1, low=0.5).interval() == ""


def test_fixed_digits_with_a_typographic_minus() -> None:
    assert [written(x, 2) for x in (1.005, -0.5, -0.001)] == ["1.00", "\u22120.50", "0.00"]


def test_intervals_agree_with_scipy() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 31, 32, 200):
        sample = rng.standard_normal(n)
        mean, low, high = mean_interval(sample)
        low_want, high_want = stats.t.interval(0.95, n - 1, loc=sample.mean(), scale=stats.sem(sample))
        assert (mean, low, high) == pytest.approx((sample.mean(), low_want, high_want))
    for hits, trials in ((0, 10), (3, 10), (199, 200), (7, 7)):
        want = stats.binomtest(hits, trials).proportion_ci(method="wilson")
        assert share_interval(hits, trials)[1:] == pytest.approx((want.low, want.high), abs=1e-9)


def test_intervals_leave_out_missing_samples() -> None:
    mean, low, high = mean_interval([[1.0, 5.0, np.nan], [3.0, np.nan, np.nan]])
    assert mean[:2] == pytest.approx([2, 5]) and np.isnan(mean[2])
    assert np.isfinite([low[0], high[0]]).all() and np.isnan([low[1], high[1], low[2]]).all()
    with pytest.raises(ValueError, match="not a share"):
        share_interval(3, 2)


def test_binomial_cdf_equals_the_plain_sum() -> None:
    for k in (0, 3, 9):
        plain = sum(math.comb(40, j) * 0.13**j * 0.87 ** (40 - j) for j in range(k + 1))
        assert binomial_cdf(k, 40, 0.13) == pytest.approx(plain, rel=1e-12)


def test_binomial_cdf_at_its_edges() -> None:
    assert binomial_cdf(-1, 10, 0.5) == 0.0
    assert binomial_cdf(10, 10, 0.5) == 1.0
    assert binomial_cdf(3, 10, 0.0) == 1.0
    assert binomial_cdf(3, 10, 1.0) == 0.0
    assert binomial_cdf(5, 100_000, 0.5) == 0.0  # far below the smallest double


def test_clopper_pearson_zero_hits_has_a_closed_form() -> None:
    assert clopper_pearson_upper(0, 100, 0.8) == pytest.approx(1 - 0.2 ** (1 / 100), rel=1e-9)


def test_clopper_pearson_matches_a_published_table() -> None:
    # 97.5 % upper limit of 5 in 20, the upper end of the usual exact 95 % interval
    assert clopper_pearson_upper(5, 20, 0.975) == pytest.approx(0.4910, abs=5e-5)


def test_nothing_observed_bounds_nothing() -> None:
    assert upper_bound(0, 0, 0.8) == 1.0
    assert lower_bound(0, 0, 0.8) == 0.0


@given(trials=st.integers(1, 500), share=st.floats(0, 1), method=st.sampled_from(["wilson", "clopper_pearson"]))
def test_bounds_enclose_the_observed_share_and_tighten_with_the_level(trials: int, share: float, method: str) -> None:
    hits = round(share * trials)
    loose, tight = upper_bound(hits, trials, 0.8, method), upper_bound(hits, trials, 0.95, method)  # type: ignore[arg-type]
    assert hits / trials <= loose + 1e-12 <= tight + 2e-12 <= 1.0 + 3e-12
    assert lower_bound(hits, trials, 0.8, method) <= hits / trials + 1e-12  # type: ignore[arg-type]


def test_the_bootstrap_covers() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(60):
        low, high = bootstrap(rng.normal(0.2, 1.0, 30).tolist(), seed) or (0.0, 0.0)
        hits += low <= 0.2 <= high
    assert hits >= 50


def log_bayes_factor(values: np.ndarray[Any, Any], mean: float) -> float:
    """The definition that the interval inverts, from a t statistic."""
    n = len(values)
    t2 = n * (values.mean() - mean) ** 2 / values.var(ddof=1)
    grown = 1 + n * EFFECT**2
    return -0.5 * math.log(grown) + n / 2 * (math.log1p(t2 / (n - 1)) - math.log1p(t2 / (n - 1) / grown))


def test_the_sequence_inverts_the_bayes_factor() -> None:
    values = np.random.default_rng(2).normal(0.3, 1.0, 14)
    low, high = confidence_sequence(values.tolist(), 0.05) or (0.0, 0.0)
    for edge in (low, high):
        assert log_bayes_factor(values, edge) == pytest.approx(math.log(20))
    assert confidence_sequence([1.0], 0.05) is None
    assert confidence_sequence([1.0, 1.1], 0.05) == (-math.inf, math.inf)


def integrated_bayes_factor(values: np.ndarray[Any, Any], mean: float) -> float:
    """The same factor without its closed form: the density of the t statistic, its noncentrality drawn from the prior
    and integrated out by quadrature, against its density when `mean` is right."""
    n = len(values)
    t = math.sqrt(n) * (values.mean() - mean) / values.std(ddof=1)

    def weighted(effect: float) -> float:
        return float(stats.nct.pdf(t, n - 1, effect * math.sqrt(n)) * stats.norm.pdf(effect, scale=EFFECT))

    return integrate.quad(weighted, -8 * EFFECT, 8 * EFFECT, limit=200)[0] / float(stats.t.pdf(t, n - 1))


@pytest.mark.parametrize(("n", "alpha"), [(5, 0.05), (12, 0.05), (30, 0.01)])
def test_the_sequence_equals_one_found_by_integration_and_root_finding(n: int, alpha: float) -> None:
    values = np.random.default_rng(n).normal(0.3, 1.0, n)
    low, high = confidence_sequence(values.tolist(), alpha) or (0.0, 0.0)
    middle, far = float(values.mean()), 3 * (high - low)

    def beyond(mean: float) -> float:
        return math.log(integrated_bayes_factor(values, mean)) - math.log(1 / alpha)

    assert optimize.brentq(beyond, middle, middle + far) == pytest.approx(high, abs=1e-6)
    assert optimize.brentq(beyond, middle - far, middle) == pytest.approx(low, abs=1e-6)


def test_looking_after_every_config_rarely_misleads() -> None:
    """2,000 tournaments of 40 configs without a difference, looked at 39 times each: at most 5 % are ever decided."""
    draws = np.random.default_rng(3).normal(0.0, 1.0, (2000, 40))
    n = np.arange(1, 41)
    mean = draws.cumsum(1) / n
    variance = (np.square(draws).cumsum(1) - n * mean**2) / np.maximum(1, n - 1)
    wrong = np.zeros(2000, dtype=bool)
    naive = np.zeros(2000, dtype=bool)
    for k in range(4, 41):
        unit = confidence_sequence(np.linspace(-1, 1, k).tolist(), 0.05)
        assert unit is not None
        half = unit[1] / np.std(np.linspace(-1, 1, k), ddof=1)  # per standard deviation
        wrong |= np.abs(mean[:, k - 1]) > half * np.sqrt(variance[:, k - 1])
        naive |= np.abs(mean[:, k - 1]) > 1.96 * np.sqrt(variance[:, k - 1] / k)
    assert wrong.mean() < 0.05 < 0.2 < naive.mean()


def test_a_real_difference_is_found_early() -> None:
    values = np.random.default_rng(4).normal(0.175, 0.05, 16).tolist()
    needed = next(n for n in range(2, 17) if (confidence_sequence(values[:n], 0.05) or (0, 0))[0] > 0)
    assert 3 <= needed <= 8


def test_whole_groups_are_resampled() -> None:
    """Rows of one group are no independent samples: with one group there is nothing to vary, however many rows."""
    rows = np.arange(100.0)
    ratio = lambda total, count: total / count  # noqa: E731
    assert ratio_interval(np.zeros(100, np.int64), ratio, rows, np.ones(100)) == (49.5, 49.5)
    low, high = ratio_interval(np.arange(100) // 50, ratio, rows, np.ones(100))
    assert (low, high) == (24.5, 74.5)  # the means of the two groups
    drawn = np.random.default_rng(0).multinomial(3, [1 / 3] * 3, 40) @ [1.0, 2.0, 4.0] / 3  # always the same draws
    assert ratio_interval(np.arange(3), ratio, [1.0, 2.0, 4.0], np.ones(3), 40) == pytest.approx(middle_95(drawn))
    assert all(map(math.isnan, ratio_interval(np.zeros(0, np.int64), ratio, [], [])))


def test_welch_by_hand() -> None:
    """Two samples with variances 1 and 4, four values each: 4.41 degrees of freedom, by Welch's formula."""
    a, b = [1.0, 2.0, 2.0, 3.0], [4.0, 6.0, 6.0, 8.0]
    va, vb = np.var(a, ddof=1) / 4, np.var(b, ddof=1) / 4
    freedom = (va + vb) ** 2 / (va**2 / 3 + vb**2 / 3)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(va + vb)
    assert freedom == pytest.approx(4.41, abs=0.01)
    assert welch(a, b) == pytest.approx((-4 - half, -4 + half))
    assert welch([1.0, 1.0], [3.0, 3.0]) == (-2.0, -2.0) and welch([1.0], b) is None


def test_the_interquartile_mean_leaves_out_a_quarter_on_each_side() -> None:
    assert iqm([0.0, 4.0, 5.0, 100.0]) == 4.5
    low, high = bootstrap([0.0, 4.0, 5.0, 6.0, 5.0, 4.0, 5.0, 100.0], statistic=iqm) or (0.0, 0.0)
    assert 3 < low < iqm([0.0, 4.0, 5.0, 6.0, 5.0, 4.0, 5.0, 100.0]) < high < 55


def test_the_bootstrap_is_the_plain_one() -> None:
    """Drawn by hand: the same generator, the same places, the same percentiles."""
    values = np.random.default_rng(5).normal(size=17)
    drawn = values[np.random.default_rng(0).integers(0, 17, (10_000, 17))].mean(1)
    assert bootstrap(values.tolist()) == pytest.approx(np.percentile(drawn, [2.5, 97.5]).tolist(), rel=1e-12)
    assert bootstrap([2.0, 2.0, 2.0]) == (2.0, 2.0)


def test_few_values_have_no_interval() -> None:
    assert student([1.0]) is None and bootstrap([1.0]) is None
    low, high = student([1.0, 3.0]) or (0.0, 0.0)
    assert (low, high) == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-4)


def test_quantiles_of_student_are_those_of_the_tables() -> None:
    assert student_quantiles(4) == pytest.approx([12.7062, 4.3027, 3.1824], abs=1e-4)
    assert student_quantiles(3, level=0.8) == pytest.approx([3.0777, 1.8856], abs=1e-4)


def test_a_share_has_hits_among_trials() -> None:
    assert share_interval(1, 1) == (1.0, *wilson(1, 1))
    assert share_interval(0, 4)[0] == 0.0
    for hits, trials in ((0, 0), (2, 1), (-1, 3)):
        with pytest.raises(ValueError, match="is not a share"):
            share_interval(hits, trials)


def test_a_lower_bound_is_the_upper_bound_of_the_others() -> None:
    """3 of 10 hits are 7 of 10 misses; the number is that of a one-sided Wilson interval by hand."""
    z, share = 1.6448536, 0.3
    by_hand = (share + z * z / 20 - z * math.sqrt(share * 0.7 / 10 + z * z / 400)) / (1 + z * z / 10)
    assert lower_bound(3, 10, 0.95) == pytest.approx(by_hand, abs=1e-6) == 1 - upper_bound(7, 10, 0.95)
    assert lower_bound(2, 20, 0.95, "clopper_pearson") == pytest.approx(0.0181, abs=1e-4)  # published
    # A part of a hit counts as a whole one: a bound may only err to the safe side.
    assert upper_bound(1.5, 20, 0.95, "clopper_pearson") == upper_bound(2, 20, 0.95, "clopper_pearson")


def test_resamples_stay_within_seeds() -> None:
    seeds = np.array([0, 0, 0, 7, 7, 7])
    drawn = grouped_resamples(seeds, 500)
    assert drawn.shape == (500, 6)
    of_seed = seeds[drawn].reshape(500, 2, 3)
    assert (of_seed == of_seed[:, :, :1]).all()  # a drawn seed brings its own runs
    both = (of_seed[:, 0, 0] != of_seed[:, 1, 0]).mean()
    assert 0.4 < both < 0.6


def test_intervals_have_the_width_of_the_mean() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, 400)
    found = grouped_interval(values, np.zeros(400, dtype=np.int64))
    assert found.low is not None and found.high is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
    same = grouped_interval(np.full(9, 2.0), np.zeros(9, dtype=np.int64))
    assert (same.value, same.low, same.high) == (2.0, 2.0, 2.0)


def test_seeds_that_differ_make_the_interval_wide() -> None:
    values = np.concatenate([np.full(50, 1.0), np.full(50, 3.0)])
    pooled = grouped_interval(values, np.zeros(100, dtype=np.int64))
    by_seed = grouped_interval(values, np.repeat([0, 1], 50))
    assert (by_seed.low, by_seed.high) == (1.0, 3.0)
    assert pooled.high is not None and pooled.high < 2.3


def test_the_middle_of_resampled_values() -> None:
    assert middle_95(np.arange(1001)) == (25.0, 975.0)
    assert middle_95([np.nan, *range(41)]) == (1.0, 39.0)
