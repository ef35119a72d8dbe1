"""Rewards by hand."""

from __future__ import annotations

import math

import pytest
import torch

from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.constants import FISH_MAX_SPEED
from marlab.fish.sea.dynamics import advance
from marlab.fish.sea.perception import neighbours
from marlab.fish.sea.rewards import reward
from tests.fish.build import sea_of


@pytest.mark.parametrize(
    ("mode", "place", "predator", "expected"),
    [
        ("cliff", (0.0, 0.0), (1.0, 0.0), 0.50),
        ("cliff", (0.0, 0.0), (3.3, 0.0), 1.19),
        ("cliff", (0.0, 0.0), (3.4, 0.0), 0.70),
        ("cliff", (9.5, 0.0), (0.0, 0.0), 0.60),
        ("continuous", (0.0, 0.0), (3.3, 0.0), 1.19),
        ("continuous", (0.0, 0.0), (3.4, 0.0), 1.20),
    ],
)
def test_reward_cases(mode: str, place: tuple, predator: tuple, expected: float) -> None:
    state = sea_of([place], predator=predator)
    gain = reward(state, state.alive, SeaConfig(vision_reward=mode)).total()
    torch.testing.assert_close(gain, torch.tensor([[expected]]), atol=1e-5, rtol=0)


def test_density_penalty_of_ten_neighbours() -> None:
    cfg = SeaConfig(density_penalty_coef=0.05, vision_reward="cliff")
    ring = [(math.cos(a), math.sin(a)) for a in range(10)]
    state = sea_of([(0.0, 0.0), *ring])
    terms = reward(state, state.alive, cfg, neighbours(state, cfg))
    assert float(terms.density[0, 0]) == pytest.approx(-0.1 * 0.05 * (10 / 6 - 0.4), abs=1e-6)


def test_death_costs_exactly_fifty_once() -> None:
    state = sea_of([(0.1, 0.0), (5.0, 0.0)], predator=(0.0, 0.0))
    after = advance(state, torch.full((1, 2), 4))
    cfg = SeaConfig()
    assert float(reward(after, state.alive, cfg).total()[0, 0]) == -50.0
    later = advance(after, torch.full((1, 2), 4))
    assert float(reward(later, after.alive, cfg).total()[0, 0]) == 0.0


@pytest.mark.parametrize(("distance", "expected"), [(1.0, 0.3), (2.0, 0.6), (3.0, 0.9)])
def test_a_visible_predator_pays_by_its_distance(distance: float, expected: float) -> None:
    """A tenth of ten times the share of the vision radius (10 / 3) that lies between."""
    state = sea_of([(0.0, 0.0)], predator=(distance, 0.0))
    for mode in ("continuous", "cliff"):
        terms = reward(state, state.alive, SeaConfig(vision_reward=mode))
        assert float(terms.predator) == pytest.approx(expected, abs=1e-6)
        assert float(terms.life) == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize(("place", "expected"), [(8.9, 0.0), (9.0, 0.0), (9.5, -0.1), (10.0, -0.2)])
def test_the_wall_costs_within_one_metre(place: float, expected: float) -> None:
    state = sea_of([(place, 0.0)], predator=(-5.0, 0.0))
    assert float(reward(state, state.alive, SeaConfig()).wall) == pytest.approx(expected, abs=1e-5)


def test_divergence_is_paid_per_top_speed_and_added() -> None:
    """Two fish side by side that leave each other at full speed."""
    cfg = SeaConfig(divergence_reward_coef=0.5, density_penalty_coef=0.0)
    state = sea_of([(0.0, 0.0), (1.0, 0.0)], [(-FISH_MAX_SPEED, 0.0), (FISH_MAX_SPEED, 0.0)], predator=(-8.0, 0.0))
    social = neighbours(state, cfg)
    terms = reward(state, state.alive, cfg, social)
    expected = 0.1 * 0.5 * social.divergence / FISH_MAX_SPEED
    assert float(expected.max()) > 0
    torch.testing.assert_close(terms.divergence, expected)
    without = reward(state, state.alive, cfg).total()
    torch.testing.assert_close(terms.total() - without, expected)


def test_density_is_free_up_to_its_target_and_only_for_the_living() -> None:
    cfg = SeaConfig(density_penalty_coef=0.3, density_target=0.5, neighbor_average_count=2)
    state = sea_of([(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (-9.0, 0.0)], predator=(0.0, 9.0))
    terms = reward(state, state.alive, cfg, neighbours(state, cfg))
    expected = -0.1 * 0.3 * (neighbours(state, cfg).number / 2 - 0.5).clamp(min=0)
    torch.testing.assert_close(terms.density, expected)
    assert float(terms.density[0, 3]) == 0.0 and float(terms.density[0, 1]) < 0
    state.alive[0, 1] = False
    gone = reward(state, state.alive, cfg, neighbours(state, cfg))
    assert float(gone.total()[0, 1]) == 0.0
