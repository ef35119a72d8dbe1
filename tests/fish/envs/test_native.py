"""One arena in C: every step equal to the tensors of the sea within rounding, whatever the settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from marlab.fish.envs.arena import Arena
from marlab.fish.envs.native import native_sea
from marlab.fish.sea.config import SeaConfig
from tests.lab.search.table_game import needs_compiler

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "eleven inputs": {"include_neighbor_features": False},
    "crowded": {"num_fish": 80, "density_penalty_coef": 0.04, "divergence_reward_coef": 0.3, "neighbor_radius": 4.0},
    "few nearest": {"neighbor_average_count": 1, "vision_reward": "cliff", "density_penalty_coef": 0.1},
    "intercept": {"predator_mode": "intercept"},
    "burst": {"predator_mode": "burst", "vision_radius": 5.0},
    "pack": {"predator_mode": "pack", "predator_count": 3},
    "random pull": {"predator_pull": "random", "predator_speed_factor": 1.5},
}


@needs_compiler
@pytest.mark.parametrize("name", SETTINGS)
def test_every_step_is_that_of_the_tensors(name: str) -> None:
    cfg = SeaConfig(**{"num_fish": 25, **SETTINGS[name]})
    quick, slow = Arena(cfg), Arena(cfg, native=False)
    assert quick._native is not None
    rng = np.random.default_rng(3)
    seen, _ = quick.reset(np.random.default_rng(5))
    expected, _ = slow.reset(np.random.default_rng(5))
    np.testing.assert_allclose(seen, expected, atol=1e-5)
    for _ in range(80):
        state = slow.state
        assert state is not None
        quick._native.begin(state)  # from the same state: rounding does not add up
        actions = rng.integers(0, 5, cfg.num_fish)
        one, other = quick.step(actions), slow.step(actions)
        np.testing.assert_allclose(one.observation, other.observation, atol=2e-5)
        np.testing.assert_allclose(one.reward, other.reward, atol=2e-5)
        assert np.array_equal(one.died, other.died) and one[3:5] == other[3:5]
        for key in ("num_alive", "timestep", "step_one_deaths"):
            assert str(one.info[key])[:40] == str(other.info[key])[:40]
        assert np.array_equal(one.info["alive_mask"], other.info["alive_mask"])
        for a, b in zip(quick.state or (), slow.state or ()):
            torch.testing.assert_close(a.to(torch.float64), b.to(torch.float64), atol=2e-5, rtol=0)
        if one.terminated:
            break


@needs_compiler
def test_an_episode_ends_alike_and_tells_the_same_deaths() -> None:
    cfg = SeaConfig(num_fish=10)
    ends = []
    for native in (True, False):
        arena = Arena(cfg, native)
        arena.reset(np.random.default_rng(1))
        while True:
            result = arena.step(np.full(10, 4))
            if result.terminated or result.truncated:
                break
        ends.append((result.truncated, result.info["timestep"], result.info["death_timesteps"].tolist()))
        assert result.info["first_death_step"] == min((t for t in ends[-1][2] if t > 0), default=-1)
    assert ends[0] == ends[1]


def test_what_c_does_not_know_is_left_to_tensors() -> None:
    assert native_sea(SeaConfig(neighbor_average_count=65)) is None
