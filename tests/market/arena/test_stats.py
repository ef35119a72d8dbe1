"""Comparisons: paired within configs, tested over configs, and a bound that allows looking all the time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from marlab.market.arena.stats import (
    EFFECT,
    best_shares,
    bootstrap,
    closed,
    compare,
    confidence_sequence,
    means_by_config,
)


def seat(agent: str, config: int, turn: int, score: float, position: str = "first", **more: Any) -> dict[str, Any]:
    plain = {"agent": agent, "config": config, "turn": turn, "place": turn, "score": score, "position": position}
    return plain | {"opening": 1000.0, "no_trade": 0.5, "captured": 1.0} | more


def test_configs_count_the_same_however_many_seats_they_have() -> None:
    seats = [seat("a", 0, 0, 1.0), seat("a", 0, 1, 2.0), seat("a", 1, 0, 3.0), seat("b", 1, 0, 9.0)]
    assert means_by_config(seats, "a") == {0: 1.5, 1: 3.0}


def test_a_comparison_by_hand() -> None:
    scores = {"a": [[1.0, 1.2], [0.8, 1.4]], "b": [[0.9, 1.3], [0.6, 1.0]]}
    seats = [
        seat(name, config, turn, value, ("first", "last")[turn])
        for name, configs in scores.items()
        for config, values in enumerate(configs)
        for turn, value in enumerate(values)
    ]
    (found,) = compare(seats, ["a", "b"], "b", 0.05, paired=True)
    assert found.differences == pytest.approx((0.0, 0.3)) and found.mean == pytest.approx(0.15)
    assert found.money == pytest.approx(150.0)
    assert found.pairs == 4 and found.pair_wins == 0.75 and found.wins == 0.5
    assert found.by_position["first"][0] == pytest.approx(0.15) and "middle" not in found.by_position
    assert found.bootstrap == pytest.approx((0.0, 0.3))
    assert best_shares(seats, ["a", "b"])["a"] >= 0.5


def test_pairing_removes_what_configs_share() -> None:
    rng = np.random.default_rng(0)
    level = rng.normal(1.0, 0.5, 12)
    seats = [seat("a", c, 0, level[c] + 0.1 + rng.normal(0, 0.01)) for c in range(12)]
    seats += [seat("b", c, 0, level[c] + rng.normal(0, 0.01)) for c in range(12)]
    (found,) = compare(seats, ["b", "a"], "b", 0.05, paired=False)
    assert found.bootstrap is not None and 0.08 < found.bootstrap[0] < 0.1 < found.bootstrap[1] < 0.12
    assert found.decided and found.pair_wins is None


def test_one_config_has_no_interval() -> None:
    (found,) = compare([seat("a", 0, 0, 1.0), seat("b", 0, 0, 0.9)], ["a", "b"], "b", 0.05, paired=True)
    assert found.bootstrap is None and found.student is None and not found.decided


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


def test_shares_of_the_possible() -> None:
    seats = [seat("a", 0, 0, 0.75), seat("a", 0, 1, 1.0), seat("a", 0, 2, 1.0, no_trade=1.0)]
    assert closed(seats, "captured") == pytest.approx((0.25 + 0.5) / 1.0)
    assert math.isnan(closed(seats[2:], "captured"))
