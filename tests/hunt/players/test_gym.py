"""The Gymnasium adapters: the public checks, and the batch against single games."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from marlab.hunt.game.scalar import PlainState, Rules
from marlab.hunt.players.gym import HuntJointEnv, HuntVectorEnv
from marlab.lab.errors import UserError

NAME = "marlab.hunt.players.gym:StagHunt-v0"


@pytest.mark.parametrize("game", ["msh_4x4", "msh_6x6_b4", "msg_4x4"])
def test_the_public_check_passes(game: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(NAME, game=game).unwrapped, skip_render_check=True)


def situation(env: HuntVectorEnv, b: int) -> PlainState:
    """Game b of a vector environment as the scalar rules have it."""
    s = env.state
    assert s is not None
    blocks = env.game.maps.blocks[int(s.map[b])].tolist()
    return PlainState(
        sum(1 << cell for cell, there in enumerate(blocks) if there), s.cell[b].tolist(), s.alive[b].tolist(),
        s.prey_cell[b].tolist(), s.prey_alive[b].tolist(), int(s.t[b]), int(s.first_hunt[b]), s.last_action[b].tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("game", ["msh_4x4", "msh_8x8_b5", "msg_4x4"])
def test_every_game_of_the_batch_is_a_single_game(game: str) -> None:
    envs = gymnasium.make_vec(NAME, num_envs=5, game=game, maps=30).unwrapped
    assert isinstance(envs, HuntVectorEnv)
    single, rng = HuntJointEnv(game), np.random.default_rng(0)
    rules, ended = Rules(envs.config), np.zeros(5, bool)
    observation, _ = envs.reset(seed=3)
    finished = 0
    for _ in range(60):
        assert envs.observation_space.contains(observation)
        before = [situation(envs, b) for b in range(5)]
        legal = observation["action_mask"]
        last = legal.shape[2] - 1 - legal[..., ::-1].argmax(2)
        actions = np.where((last > 4) & (rng.random(last.shape) < 0.7), last, rng.integers(0, 5, last.shape))
        observation, reward, over, truncated, info = envs.step(actions)
        assert not truncated.any()
        for b in range(5):
            if ended[b]:  # it began anew
                assert reward[b] == 0 and not over[b] and observation["t"][b] == 0 and observation["alive"][b].all()
                continue
            step = rules.step(before[b], actions[b].tolist())
            assert situation(envs, b) == step.after and over[b] == step.over
            assert info["rewards"][b] == pytest.approx(step.reward) and info["done"][b].tolist() == step.done
            assert reward[b] == pytest.approx(sum(step.reward) / len(step.reward))
            seen = single._seen(step.after)
            assert all(np.array_equal(observation[key][b], value) for key, value in seen.items())
        ended, finished = over, finished + int(over.sum())
    assert finished > 0
    again = envs.reset(seed=3)[0]
    assert all(
        np.array_equal(again[key], value)
        for key, value in gymnasium.make_vec(NAME, num_envs=5, game=game, maps=30).reset(seed=3)[0].items()
    )


def test_wrong_use_is_a_sentence() -> None:
    envs, env = HuntVectorEnv(2), HuntJointEnv()
    for made in (envs, env):
        with pytest.raises(UserError, match="call reset"):
            made.step(np.zeros((2, 4), int))
    envs.reset(seed=0)
    env.reset(seed=0)
    with pytest.raises(UserError, match=r"shape \[4\] .* expected 2 x 4 whole numbers from 0 to 6"):
        envs.step(np.zeros(4, int))
    with pytest.raises(UserError, match="between 0 and 7; expected whole numbers from 0 to 6"):
        envs.step(np.array([[0, 0, 0, 7], [0, 0, 0, 0]]))
    with pytest.raises(UserError, match="type float64"):
        env.step(np.zeros(4))
    with pytest.raises(UserError, match="num_envs is 0"):
        HuntVectorEnv(0)
    with pytest.raises(UserError, match="render_mode is 'human'"):
        HuntJointEnv(render_mode="human")
    assert torch.equal(envs.state.t, torch.zeros(2, dtype=torch.int64))  # type: ignore[union-attr]
