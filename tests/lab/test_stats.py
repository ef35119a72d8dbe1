"""Intervals against cases with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.lab.stats import grouped_interval, grouped_resamples


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
