"""Arenas for stable-baselines3: its episodes are those of the world, and its PPO learns in them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.world import FishWorld
from marlab.lab.errors import UserError

pytest.importorskip("stable_baselines3")

from marlab.fish.envs.sb3 import FishVecEnv


def test_steps_are_those_of_the_world_and_ends_show_what_was_last_seen() -> None:
    env, world = FishVecEnv(3, seed=4, num_fish=2), FishWorld(SeaConfig(num_fish=2), 3, seed=4)
    for both in (env.world, world):
        both.set_force_reset_steps(40)
    world.reset()
    assert np.array_equal(env.reset(), world.observe().numpy())
    rng, ends = np.random.default_rng(0), 0
    for _ in range(100):
        actions = rng.integers(0, 5, (3, 2))
        seen, gain, over, infos = env.step(actions)
        result = world.step(torch.as_tensor(actions))
        np.testing.assert_allclose(gain, result.reward.sum(1).numpy() / 2, atol=1e-6)
        assert np.array_equal(over, world.waiting.numpy())
        for arena in np.flatnonzero(over):
            assert np.array_equal(infos[arena]["terminal_observation"], world.observe()[arena].numpy())
            cut = bool(world.state.alive[arena].any())
            assert infos[arena]["TimeLimit.truncated"] == cut and infos[arena]["timestep"] == int(world.state.t[arena])
            ends += 1
        world.renew()
        np.testing.assert_allclose(seen, world.observe().numpy(), atol=1e-6)
    assert ends >= 6


def test_a_seed_fixes_the_starts() -> None:
    env = FishVecEnv(2, num_fish=3)
    env.seed(7)
    first = env.reset()
    assert not np.array_equal(env.reset(), first)
    env.seed(7)
    assert np.array_equal(env.reset(), first)


def test_wrong_actions_are_sentences() -> None:
    env = FishVecEnv(2, num_fish=3)
    env.reset()
    for wrong, what in ((np.zeros((2, 1), int), "shape"), (np.zeros((2, 3)), "whole"), (np.full((2, 3), 5), "0 to 4")):
        with pytest.raises(UserError, match=what):
            env.step(wrong)


def test_ppo_of_the_library_learns_in_it() -> None:
    from stable_baselines3 import PPO

    model = PPO("MlpPolicy", FishVecEnv(4, num_fish=2), n_steps=16, batch_size=32, n_epochs=1, device="cpu")
    model.learn(128)
    assert model.num_timesteps == 128
