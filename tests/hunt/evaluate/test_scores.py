"""Differences, shares and adaptation times against cases with known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from marlab.hunt.evaluate.scores import Score, difference, normalised


def score(per_run: np.ndarray, seeds: np.ndarray | None = None, by_episode: tuple[float, ...] = ()) -> Score:
    seeds = np.zeros(len(per_run), dtype=np.int64) if seeds is None else seeds
    empty = np.zeros(0)
    return Score("a", "s", per_run, seeds, np.array(by_episode), (empty, empty), 1, 1.0, {})


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
