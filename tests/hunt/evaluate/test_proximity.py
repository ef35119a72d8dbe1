"""Best-response proximity, its intervals, regret and adaptation."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.hunt.evaluate.proximity import Played, gap, proximity_rows, summarise


def played(level: float, reference: float = 2.0, *, late: int = 0, seeds: int = 3) -> Played:
    runs = np.full(12, level) + np.tile([-0.1, 0.1], 6)
    curve = np.where(np.arange(20) < late, 0.5, level)
    return Played(runs, np.repeat(np.arange(seeds), 12 // seeds), curve, reference)


def test_proximity_is_a_share_of_the_best_response() -> None:
    found = summarise({"a": played(1.0), "b": played(1.8), "c": played(2.2), "d": played(0.4)})
    assert found.mean.value == pytest.approx((0.5 + 0.9 + 1.1 + 0.2) / 4)  # above 1 is shown as it is
    assert found.iqm.value == pytest.approx(0.7)  # the middle half
    assert found.mean.low < found.mean.value < found.mean.high
    assert (found.worst, found.regret) == ("d", pytest.approx(1.6))


def test_the_first_episode_and_adaptation_are_told_apart() -> None:
    slow, quick, never = played(1.9, late=6), played(1.9), played(1.0)
    assert slow.first == 0.25 and quick.first == 0.95
    assert quick.episodes_to_adapt == 1 and slow.episodes_to_adapt == 7 and never.episodes_to_adapt is None
    [row] = proximity_rows({"agent": {"x": slow, "y": never}})
    assert row[-1] == "1 of 2, median 7"


def test_a_gap_is_clear_only_where_agents_differ() -> None:
    weak, strong = {"x": played(1.0), "y": played(1.2)}, {"x": played(1.4), "y": played(1.6), "z": played(0.0)}
    clear = gap(strong, weak)
    assert clear.value == pytest.approx(0.2) and clear.low > 0
    fewer = {
        name: Played(one.per_run[:-4], one.seeds[:-4], one.by_episode, one.reference) for name, one in weak.items()
    }
    apart = gap(weak, fewer)  # other runs: each side is resampled by itself
    assert apart.low < 0 < apart.high


def test_runs_that_began_alike_are_compared_run_by_run() -> None:
    rng = np.random.default_rng(0)
    luck, seeds = rng.normal(0, 1.0, 40), np.repeat(np.arange(4), 10)
    runs = np.zeros(3)
    one, other = (Played(2.0 + luck + lead, seeds + shift, runs, 2.0) for lead, shift in ((0.1, 0), (0.0, 7)))
    paired = gap({"x": one}, {"x": other})
    assert (paired.value, paired.low, paired.high) == pytest.approx((0.05, 0.05, 0.05))  # the same luck on both sides
    script = Played(2.0 + luck, np.zeros(40, dtype=np.int64), runs, 2.0)
    assert gap({"x": one}, {"x": script}).low == pytest.approx(0.05)
    unlike = Played(other.per_run[::-1].copy(), other.seeds, runs, 2.0)
    assert gap({"x": one}, {"x": unlike}).low < 0  # other luck: nothing is shown
