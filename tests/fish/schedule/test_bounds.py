import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlab.fish.schedule.bounds import binomial_cdf, clopper_pearson_upper, lower_bound, upper_bound, wilson_interval
from marlab.lab.stats import share_interval


@pytest.mark.parametrize(("hits", "trials"), [(0, 20), (3, 50), (13, 960), (50, 50)])
def test_wilson_agrees_with_the_reports_interval(hits: int, trials: int) -> None:
    _, low, high = share_interval(hits, trials)
    assert wilson_interval(hits, trials) == pytest.approx((low, high))


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
