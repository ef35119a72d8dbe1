"""Rewards by hand."""

from __future__ import annotations

import math

import pytest
import torch

from marlab.fish.sea.config import SeaConfig
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
