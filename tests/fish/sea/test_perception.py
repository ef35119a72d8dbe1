"""Inputs and rewards: the table of cases, the edges, and rows that must be empty."""

from __future__ import annotations

import math

import pytest
import torch

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.perception import neighbours, observe
from tests.fish.build import reference_of, sea_of


def test_width_and_empty_neighbourhood() -> None:
    state = sea_of([(1.0, 2.0)], [(0.3, 0.4)])
    wide = observe(state, SeaConfig())
    assert wide.shape == (1, 1, 18) and not wide[..., 11:].any()
    narrow = observe(state, SeaConfig(include_neighbor_features=False))
    assert narrow.shape == (1, 1, 11)
    assert torch.equal(wide[..., :11], narrow)


def test_predator_at_exactly_the_vision_radius_is_not_visible() -> None:
    cfg = SeaConfig(include_neighbor_features=False)
    for distance, visible in ((sea.VISION_RADIUS, 0.0), (sea.VISION_RADIUS - 1e-4, 1.0)):
        row = observe(sea_of([(0.0, 0.0)], predator=(distance, 0.0), predator_velocity=(1.0, -2.0)), cfg)[0, 0]
        assert float(row[5]) == visible
        assert bool(row[5:].any()) == bool(visible)


def test_seen_predator_is_relative_in_place_and_absolute_in_velocity() -> None:
    state = sea_of([(1.0, 1.0)], [(1.0, 0.0)], predator=(2.0, 3.0), predator_velocity=(1.0, -2.0))
    row = observe(state, SeaConfig(include_neighbor_features=False))[0, 0]
    d = math.sqrt(5.0)
    expected = [0.1, 0.1, 0.5, 0.0, (10 - math.sqrt(2)) / 10, 1.0, 0.3, 0.6, 0.5, -1.0, d * 0.3]
    torch.testing.assert_close(row, torch.tensor(expected), atol=1e-6, rtol=0)


def test_the_dead_see_nothing_and_are_not_seen() -> None:
    state = sea_of([(0.0, 0.0), (1.0, 0.0), (0.0, -5.0)])
    state.alive[0, 1] = False
    rows = observe(state, SeaConfig())
    assert not rows[0, 1].any()
    assert not rows[0, 0, 11:].any()


@pytest.mark.parametrize("count", [2, 4, 7, 8, 30])
@pytest.mark.parametrize("k", [1, 6])
def test_neighbour_features_equal_the_plain_loop(count: int, k: int) -> None:
    """With fewer, exactly and more than K neighbours, some of them dead and some out of range."""
    generator = torch.Generator().manual_seed(count)
    place = (torch.rand(count, 2, generator=generator) * 6 - 3).tolist()
    speed = (torch.rand(count, 2, generator=generator) * 2 - 1).tolist()
    state = sea_of(place, speed)
    state.alive[0, ::5] = count < 7
    loop = reference_of(state, neighbour_count=k)
    for one, alive in zip(loop.fish, state.alive[0].tolist()):
        one.alive = alive
    rows = observe(state, SeaConfig(neighbor_average_count=k))[0]
    for row, expected in zip(rows, loop.observations()):
        expected = [0.0] * 18 if expected is None else expected
        torch.testing.assert_close(row, torch.tensor(expected), atol=2e-5, rtol=0)


def test_neighbour_at_exactly_the_radius_counts() -> None:
    state = sea_of([(0.0, 0.0), (3.0, 0.0)])
    assert neighbours(state, SeaConfig()).number.tolist() == [[1.0, 1.0]]
    assert neighbours(state, SeaConfig(neighbor_radius=2.99)).number.tolist() == [[0.0, 0.0]]


def test_fish_on_the_same_spot_give_finite_numbers() -> None:
    rows = observe(sea_of([(1.0, 1.0), (1.0, 1.0)], [(1.0, 0.0), (0.0, 1.0)]), SeaConfig())
    assert rows.isfinite().all()
