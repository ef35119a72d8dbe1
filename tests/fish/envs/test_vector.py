"""The vector environment: autoreset one step late, seeds."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from marlab.fish.envs.register import MANY
from marlab.fish.envs.vector import FishVectorEnv


def test_vector_environment_resets_itself_at_the_next_step() -> None:
    env = gymnasium.make_vec(MANY, num_envs=3, num_fish=4)
    assert isinstance(env.unwrapped, FishVectorEnv)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    obs, info = env.reset(seed=1)
    assert obs in env.observation_space and info["alive_mask"].all()
    env.action_space.seed(0)
    for _ in range(500):
        obs, gain, terminated, truncated, info = env.step(env.action_space.sample())
        assert np.allclose(gain, info["rewards"].mean(1), atol=1e-6)
    assert (terminated | truncated).all()
    obs, gain, terminated, truncated, info = env.step(env.action_space.sample())
    assert not gain.any() and not (terminated | truncated).any() and not info["timestep"].any()


def test_vector_environment_repeats_with_its_seed() -> None:
    first, second = (gymnasium.make_vec(MANY, num_envs=2, num_fish=3) for _ in range(2))
    second.reset(seed=4)
    assert np.array_equal(first.reset(seed=9)[0], second.reset(seed=9)[0])
    first.action_space.seed(0)
    for _ in range(30):
        actions = first.action_space.sample()
        assert np.array_equal(first.step(actions)[0], second.step(actions)[0])
