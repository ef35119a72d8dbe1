"""Numbers of a shoal and of flight, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from marlab.fish.measure.policies import play, scripted
from marlab.fish.measure.schooling import ANGLE_BINS, Watcher, attack_speed, best_escape_angle, escape_angles, schooling
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import SEAS
from tests.fish.build import sea_of


def numbers(positions: list[tuple[float, float]], velocities: list[tuple[float, float]]) -> list[float]:
    return [float(value) for value in schooling(sea_of(positions, velocities))]


def test_a_school_a_mill_and_two_that_part() -> None:
    square = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]
    assert numbers(square, [(0.5, 0.0)] * 4) == pytest.approx([1.0, 0.0, math.sqrt(2)], abs=1e-6)
    assert numbers(square, [(0.0, 1.0), (-2.0, 0.0), (0.0, -1.0), (1.0, 0.0)]) == pytest.approx(
        [0.0, 1.0, math.sqrt(2)], abs=1e-6
    )
    assert numbers([(0.0, 0.0), (3.0, 0.0)], [(-1.0, 0.0), (1.0, 0.0)]) == pytest.approx([0.0, 0.0, 3.0], abs=1e-6)


def test_the_dead_do_not_count() -> None:
    state = sea_of([(0.0, 0.0), (3.0, 0.0), (0.1, 0.0)], [(1.0, 0.0)] * 3)
    told = schooling(state._replace(alive=torch.tensor([[True, True, False]])))
    assert float(told.nearest) == pytest.approx(3.0)
    alone = schooling(state._replace(alive=torch.tensor([[True, False, False]])))
    assert all(bool(torch.isnan(value)) for value in alone)


def test_escape_angles_are_those_of_fish_before_the_predator() -> None:
    state = sea_of(
        [(1.5, 0.0), (1.5, 0.1), (-1.5, 0.0), (3.0, 0.0)], [(1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 0.0)],
        predator=(0.0, 0.0), predator_velocity=(2.0, 0.0),
    )  # fmt: skip
    assert escape_angles(state).tolist() == pytest.approx([0.0, 90.0], abs=1e-4)


def test_the_best_angle_passes_furthest_from_a_straight_attack() -> None:
    def passes(angle: float, predator: float, fish: float = 2.0) -> float:
        """Least distance to a predator that starts 1 m behind, in small steps."""
        x, y = fish * math.cos(angle) - predator, fish * math.sin(angle)
        return min(math.hypot(1 + x * t / 1000, y * t / 1000) for t in range(4000))

    best = best_escape_angle(2.5)
    tried = {angle: passes(math.radians(angle), 2.5) for angle in (best - 6, best, best + 6)}
    assert max(tried, key=lambda angle: tried[angle]) == best
    assert best_escape_angle(1.0) == 0.0
    assert attack_speed(SEAS["pursuit"]) == 2.4 and attack_speed(SEAS["burst"]) == pytest.approx(3.2)  # near its prey


def test_a_watcher_gathers_over_an_episode() -> None:
    start, _ = seeded_reset([1, 2], SEAS["pursuit"])
    watcher = Watcher()
    play(start, scripted("evade"), SEAS["pursuit"], 30, watcher)
    assert len(watcher.sums) == 3 and watcher.angles.shape == (ANGLE_BINS,) and int(watcher.angles.sum()) > 0
    assert all(len(values) == 2 and min(values) > 0 for values in watcher.means().values())
