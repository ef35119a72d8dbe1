"""The scripted ladder: each policy's decisions in clear cases, and its level over whole episodes."""

from __future__ import annotations

import pytest
import torch

from marlab.fish.measure.policies import SCRIPTED, flee, play, scripted, sidestep, south
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.perception import observe
from marlab.fish.sea.reset import seeded_reset
from marlab.lab.errors import UserError
from tests.fish.build import sea_of
from tests.fish.cases import BARE_SETTINGS

LEAN = SeaConfig(include_neighbor_features=False, **COMPAT_SWITCHES)


def decide(policy, **state) -> int:
    return int(policy(observe(sea_of(**state), LEAN))[0, 0])


def test_flee_turns_its_back() -> None:
    swimming_east = {"positions": [(0.0, 0.0)], "velocities": [(1.0, 0.0)]}
    assert decide(flee, **swimming_east, predator=(-2.0, 0.0)) == sea.FORWARD
    assert decide(flee, **swimming_east, predator=(0.5, -2.0)) == sea.LEFT
    assert decide(flee, **swimming_east, predator=(0.5, 2.0)) == sea.RIGHT
    assert decide(flee, **swimming_east, predator=(4.0, 0.0)) == sea.HOLD  # too far to be seen


def test_south_steers_down_and_stops() -> None:
    assert decide(south, positions=[(0.0, 0.0)], velocities=[(0.0, -1.0)]) == sea.FORWARD
    assert decide(south, positions=[(0.0, 0.0)], velocities=[(1.0, 0.0)]) == sea.RIGHT
    assert decide(south, positions=[(3.0, -7.4)], velocities=[(1.0, 0.0)]) == sea.BRAKE
    assert decide(south, positions=[(8.0, -5.0)], velocities=[(-1.0, -0.8)]) == sea.FORWARD  # towards (5, -7.5)


def test_sidestep_leaves_the_line_of_an_approaching_predator_only() -> None:
    coming = {"predator": (-2.0, 0.0), "predator_velocity": (2.0, 0.0)}
    north = {"positions": [(0.0, 0.3)], "velocities": [(0.0, 1.0)]}
    assert decide(sidestep, **north, **coming) == sea.FORWARD
    passed = {"predator": (2.0, 0.0), "predator_velocity": (2.0, 0.0)}
    assert decide(sidestep, **north, **passed) == decide(south, **north, **passed)


def test_a_fish_at_rest_is_set_moving() -> None:
    assert decide(south, positions=[(0.0, 0.0)]) == sea.FORWARD


@pytest.fixture(scope="module")
def shoals() -> SeaState:
    return seeded_reset(list(range(100)), LEAN, fish=48)[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("forward", 0.517),
        ("random", 0.743),
        ("broadcast", 0.743),
        ("hold", 0.754),
        ("left", 0.838),
        ("brake", 0.838),
        ("flee", 0.906),
        ("south", 0.937),
        ("sidestep", 0.982),
    ],
)
def test_level_of_each_policy(shoals: SeaState, name: str, expected: float) -> None:
    """Within four standard errors of 100 episodes (measured per policy, at least 0.01) of the reference level."""
    survival = play(shoals, scripted(name, torch.Generator().manual_seed(0)), LEAN).survival
    error = float(survival.std()) / 10
    assert float(survival.mean()) == pytest.approx(expected, abs=max(4 * error, 0.01))


def test_bare_sea_is_deadlier_for_random_fish(shoals: SeaState) -> None:
    bare = SeaConfig(**BARE_SETTINGS)
    state = seeded_reset(list(range(100)), bare, fish=48)[0]
    result = play(state, scripted("random", torch.Generator().manual_seed(0)), bare)
    assert float(result.survival.mean()) == pytest.approx(0.653, abs=0.03)
    assert float((result.final.death_step == 1).float().mean()) == pytest.approx(0.086, abs=0.015)


def test_play_counts_actions_of_the_living_and_reports_every_step(shoals: SeaState) -> None:
    seen: list[SeaState] = []
    result = play(shoals.select(slice(0, 5)), scripted("brake"), LEAN, steps=20, on_step=seen.append)
    assert len(seen) == 20 and result.alive_counts.shape == (20, 5)
    assert torch.equal(result.alive_counts[-1], result.final.alive.sum(1))
    assert float(result.total_reward.mean()) < 20 * 1.2


def test_unknown_names_and_missing_generators_are_refused() -> None:
    with pytest.raises(UserError):
        scripted("swim")
    with pytest.raises(UserError):
        scripted("random")
    assert len(SCRIPTED) == 13
