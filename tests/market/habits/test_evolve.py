"""From scores to the next centre: known parabolas are found, luck is not followed."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.market.habits import evolve
from marlab.market.rules.habits import PLACE

TOP = {"hold": -1.0, "large": 0.5}
"""Where the score is highest, in spreads from the rule."""


def score(habits: evolve.Array) -> evolve.Array:
    z = (habits - evolve.USUAL) / evolve.SPREAD
    return -0.002 * sum((z[:, PLACE[name]] - top) ** 2 for name, top in TOP.items())


def batch(centre: evolve.Array, seats: int, noise: float, seed: int = 0) -> evolve.Moments:
    rng = np.random.default_rng(seed)
    habits, market = evolve.draw(centre, seats, 1.0, 0.3, rng), np.arange(seats) // 6
    luck = rng.normal(0.0, 0.3, seats)[market] + noise * rng.standard_normal(seats)
    return evolve.moments(habits, score(habits) + luck, market)


def test_parabolas_are_found_whatever_the_markets_are_worth() -> None:
    fitted = evolve.fit(batch(evolve.USUAL, 6000, 1e-4))
    assert fitted.slope[PLACE["hold"]] == pytest.approx(-0.004, abs=3e-4)
    assert fitted.bend[PLACE["large"]] == pytest.approx(-0.002, abs=3e-4)
    assert evolve.told(fitted)[0][0] in TOP
    others = [i for name, i in PLACE.items() if name not in TOP]
    assert np.abs(fitted.slope[others]).max() < 3e-4


def test_steps_climb_to_the_top() -> None:
    centre, known = evolve.USUAL, evolve.nothing()
    for number in range(6):
        known = known.plus(batch(centre, 3000, 0.01, number), 0.6)
        centre, promised = evolve.step(centre, evolve.fit(known), 0.6)
        assert promised >= 0
    z = (centre - evolve.USUAL) / evolve.SPREAD
    assert score(centre[None])[0] > 0.6 * score(evolve.USUAL[None])[0]  # both below 0
    assert z[PLACE["hold"]] == pytest.approx(-1.0, abs=0.4)


def test_luck_moves_little() -> None:
    rng = np.random.default_rng(1)
    habits, market = evolve.draw(evolve.USUAL, 1200, 1.0, 0.3, rng), np.arange(1200) // 6
    fitted = evolve.fit(evolve.moments(habits, 0.05 * rng.standard_normal(1200), market))
    centre, _ = evolve.step(evolve.USUAL, fitted, 0.6)
    assert np.abs((centre - evolve.USUAL) / evolve.SPREAD).mean() < 0.15  # of 0.42 that a step can be


def test_only_a_share_is_changed_and_bounds_hold() -> None:
    drawn = evolve.draw(evolve.USUAL, 400, 3.0, 0.2, np.random.default_rng(0))
    assert 0.18 < (drawn != evolve.USUAL).mean() < 0.22
    assert (drawn >= evolve.LEAST).all() and (drawn <= evolve.MOST).all()


def test_older_batches_count_less() -> None:
    one, other = (batch(evolve.USUAL, 60, 0.01, seed) for seed in (0, 1))
    both = one.plus(other, 0.5)
    assert both.seats == 0.5 * one.seats + other.seats == 75
    assert np.allclose(both.products, 0.5 * one.products + other.products)
