"""Games for stable-baselines3: the steps are those of the rules, and ends show what was last seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.hunt.game.views import View, flat_fields
from marlab.lab.errors import UserError

pytest.importorskip("stable_baselines3")

from marlab.hunt.players.sb3 import HuntVecEnv


def test_steps_are_those_of_the_game_and_ends_show_what_was_last_seen() -> None:
    env = HuntVecEnv(6, "msh_4x4", others="NS,NH,NH", seed=3)
    mask = flat_fields(env.game).mask
    seen, ends, earned = env.reset(), 0, []
    for _ in range(60):
        before, legal = env.state, seen[:, mask]
        actions = np.where(legal[:, 5:].any(1), 5 + legal[:, 5:].argmax(1), 4)  # hunts what is there, else stays
        wander = np.random.default_rng(len(earned)).integers(0, 5, 6)
        actions = np.where(actions == 4, wander, actions)
        seen, reward, over, infos = env.step(actions)
        assert env.observation_space.contains(seen[0]) and seen.dtype == np.float32
        for b in np.flatnonzero(over):
            last = infos[b]["terminal_observation"]
            assert not last[mask].any() or int(before.t[b]) == 34  # it left, or the time was up
            assert infos[b]["episode"]["l"] == int(before.t[b]) + 1 and not infos[b]["TimeLimit.truncated"]
            assert int(env.state.t[b]) == 0 and bool(env.state.alive[b].all())
            earned.append(infos[b]["episode"]["r"])
            assert infos[b]["episode"]["r"] == pytest.approx(reward[b])  # everything is paid with the last step
            ends += 1
        going = torch.from_numpy(~over)
        assert torch.equal(env.state.t[going], before.t[going] + 1)
    assert ends >= 6 and max(earned) >= 1.0
    assert np.array_equal(seen, View(env.game, env.state).flat(torch.zeros(1, dtype=torch.int64))[:, 0].numpy())


def test_the_same_seed_gives_the_same_episodes_and_its_ppo_runs() -> None:
    from stable_baselines3 import PPO

    first, second = HuntVecEnv(4, seed=5), HuntVecEnv(4, seed=5)
    assert np.array_equal(first.reset(), second.reset())
    for _ in range(5):
        assert all(np.array_equal(a, b) for a, b in zip(first.step(np.full(4, 2))[:3], second.step(np.full(4, 2))[:3]))
    PPO("MlpPolicy", first, n_steps=8, batch_size=16, n_epochs=1, device="cpu").learn(32)
    with pytest.raises(UserError, match="expected 4 whole numbers from 0 to 6"):
        first.step(np.zeros(3, int))
    with pytest.raises(UserError, match="give one per player"):
        HuntVecEnv(2, others="NS,NH")
