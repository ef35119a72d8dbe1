"""Intervals and adaptation times against cases with known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from marlab.hunt.evaluate.stats import Score, difference, interval, normalised, resampled


def score(per_run: np.ndarray, seeds: np.ndarray | None = None, by_episode: tuple[float, ...] = ()) -> Score:
    seeds = np.zeros(len(per_run), dtype=np.int64) if seeds is None else seeds
    empty = np.zeros(0)
    return Score("a", "s", per_run, seeds, np.array(by_episode), (empty, empty), 1, 1.0, {})


def test_resamples_stay_within_seeds() -> None:
    seeds = np.array([0, 0, 0, 7, 7, 7])
    drawn = resampled(seeds, 500)
    assert drawn.shape == (500, 6)
    of_seed = seeds[drawn].reshape(500, 2, 3)
    assert (of_seed == of_seed[:, :, :1]).all()  # a drawn seed brings its own runs
    both = (of_seed[:, 0, 0] != of_seed[:, 1, 0]).mean()
    assert 0.4 < both < 0.6


def test_intervals_have_the_width_of_the_mean() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, 400)
    found = interval(values, np.zeros(400, dtype=np.int64))
    assert found.low is not None and found.high is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
    same = interval(np.full(9, 2.0), np.zeros(9, dtype=np.int64))
    assert (same.value, same.low, same.high) == (2.0, 2.0, 2.0)


def test_seeds_that_differ_make_the_interval_wide() -> None:
    values = np.concatenate([np.full(50, 1.0), np.full(50, 3.0)])
    pooled = interval(values, np.zeros(100, dtype=np.int64))
    by_seed = interval(values, np.repeat([0, 1], 50))
    assert (by_seed.low, by_seed.high) == (1.0, 3.0)
    assert pooled.high is not None and pooled.high < 2.3


def test_pairs_cancel_what_is_common() -> None:
    rng = np.random.default_rng(2)
    starts = rng.normal(0.0, 5.0, 60)
    one, other = score(starts + 1.0 + rng.normal(0, 0.1, 60)), score(starts)
    gap = difference(one, other)
    assert gap.low is not None and 0.9 < gap.low < 1.0 < 1.05 < 1.2
    alone = one.measured()
    assert alone.low is not None and alone.high is not None and alone.high - alone.low > 2.0


def test_the_scale_runs_from_random_to_the_reference() -> None:
    rng = np.random.default_rng(3)
    random, best = score(rng.normal(1.0, 0.1, 40)), score(rng.normal(3.0, 0.1, 40))
    assert normalised(random, random, best).value == 0.0  # type: ignore[union-attr]
    assert normalised(best, random, best).value == 1.0  # type: ignore[union-attr]
    half = normalised(score((random.per_run + best.per_run) / 2), random, best)
    assert half is not None and half.value == pytest.approx(0.5) and half.low is not None and half.low > 0.45
    assert normalised(best, best, best) is None


def test_episodes_until_an_agent_has_adapted() -> None:
    learnt = score(np.full(4, 5.0), by_episode=(0.0,) * 10 + (5.0,) * 20)
    assert learnt.episodes_to_adapt == 11  # the first window of five episodes that all earn 5
    assert replace(learnt, by_episode=np.full(30, 5.0)).episodes_to_adapt == 1
    assert replace(learnt, by_episode=np.zeros(30)).episodes_to_adapt is None
    assert replace(learnt, per_run=np.zeros(4)).episodes_to_adapt is None
