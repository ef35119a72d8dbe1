"""Comparisons: paired within configs, tested over configs, and a bound that allows looking all the time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from marlab.market.arena.stats import best_shares, closed, compare, means_by_config


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


def test_shares_of_the_possible() -> None:
    seats = [seat("a", 0, 0, 0.75), seat("a", 0, 1, 1.0), seat("a", 0, 2, 1.0, no_trade=1.0)]
    assert closed(seats, "captured") == pytest.approx((0.25 + 0.5) / 1.0)
    assert math.isnan(closed(seats[2:], "captured"))
