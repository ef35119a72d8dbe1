"""One arena: seeded resets and the records of step-one deaths."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.fish.envs.gym import FishEscapeEnv
from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.reset import seeded_reset


def test_step_one_records() -> None:
    env = FishEscapeEnv(num_fish=60)
    for seed in range(20):
        env.reset(seed=seed)
        info = env.step(np.full(60, 4))[4]
        records = info["step_one_deaths"]
        assert len(records) == 60 - info["num_alive"]
        for record in records:
            gap = np.subtract(record["fish_position"], record["predator_position"])
            assert np.hypot(*gap) < 0.7 and record["timestep"] == 1 and record["predator_index"] == 0
        if records:
            assert env.step(np.full(60, 4))[4]["step_one_deaths"] == records  # kept for the whole episode
            return
    pytest.fail("no death at step one in 20 arenas of 60 fish")


def test_reset_with_a_seed_is_the_golden_reset_and_goes_on_without_one() -> None:
    env = FishEscapeEnv(num_fish=3, **COMPAT_SWITCHES)
    env.reset(seed=7)
    expected, _ = seeded_reset([7], SeaConfig(num_fish=3, **COMPAT_SWITCHES))
    assert torch.equal(env.arena.state.x, expected.x)
    env.reset()
    assert not torch.equal(env.arena.state.x, expected.x)
