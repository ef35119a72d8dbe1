"""The PettingZoo adapter: the public suite, full episodes bit for bit, and saved states."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from marlab.hunt.game.config import game_config
from marlab.hunt.players.env import HuntEnv, parallel_env
from marlab.lab.errors import UserError


def flat(value) -> list:
    """Any nesting of dictionaries, arrays and numbers as comparable plain values."""
    if isinstance(value, dict):
        return [(key, flat(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [flat(item) for item in value]
    return [value.dtype.str, value.tolist()] if isinstance(value, np.ndarray) else [value]


def episode(env: HuntEnv, seed: int | None, rng: np.random.Generator, hunting: bool = True) -> list:
    """A whole episode of legal actions (hunting where possible), with everything the environment said."""
    observations, infos = env.reset(seed=seed)
    said = [flat((observations, infos))]
    while env.agents:
        actions = {}
        for agent in env.agents:
            legal = np.flatnonzero(observations[agent]["action_mask"])
            actions[agent] = int(legal[-1] if hunting and legal[-1] > 4 else rng.choice(legal))
        observations, *rest = env.step(actions)
        said.append(flat((observations, rest, env.state())))
    return said


@pytest.mark.parametrize("name", ["msh_4x4", "msh_8x8_b5", "msh_tiny", "msg_4x4"])
def test_the_public_suite_passes(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(parallel_env(name), num_cycles=200)


@pytest.mark.parametrize("name", ["msh_4x4", "msh_8x8_b5", "msg_6x6"])
def test_full_episodes_are_the_same_for_the_same_seed(name: str) -> None:
    first, second = HuntEnv(name), HuntEnv(name)
    for seed in (5, None, None):  # later resets continue the seeded stream
        rng = [np.random.default_rng(seed or 1) for _ in range(2)]
        assert episode(first, seed, rng[0]) == episode(second, seed, rng[1])
    assert episode(first, 6, np.random.default_rng(0)) != episode(second, 7, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["msh_8x8_b5", "msg_4x4"])
def test_a_saved_state_continues_bit_for_bit(name: str) -> None:
    env, other = HuntEnv(name), HuntEnv(name)
    env.reset(seed=3)
    for _ in range(4):
        env.step(dict.fromkeys(env.agents, 1))
    other.set_state(env.get_state())
    for _ in range(40):
        actions = {agent: int(np.random.default_rng(9).integers(7)) for agent in env.agents}
        assert flat(env.step(actions)) == flat(other.step(actions))
    assert flat(env.reset()) == flat(other.reset())


def test_observations_lie_in_their_spaces_and_infos_sum_up_the_episode() -> None:
    env, rng = HuntEnv("msh_4x4"), np.random.default_rng(0)
    outcomes = set()
    for seed in range(8):
        observations, _ = env.reset(seed=seed)
        total = dict.fromkeys(env.possible_agents, 0.0)
        steps = dict.fromkeys(env.possible_agents, 0)
        while env.agents:
            for agent in env.agents:
                assert env.observation_space(agent).contains(observations[agent])
            masks = {agent: observations[agent]["action_mask"] for agent in env.agents}
            actions = {a: 6 if m[6] else int(rng.choice(np.flatnonzero(m))) for a, m in masks.items()}
            observations, rewards, terminated, truncated, infos = env.step(actions)
            assert not any(truncated.values())
            for agent, reward in rewards.items():
                total[agent] += reward
                steps[agent] += 1
                assert ("episode" in infos[agent]) == terminated[agent]
                if terminated[agent]:
                    told = infos[agent]["episode"]
                    assert told["return"] == pytest.approx(total[agent]) and told["steps"] == steps[agent]
                    assert (told["outcome"] == "none") == (told["sharers"] == 0)
                    outcomes.add(told["outcome"])
        assert env.step({}) == ({}, {}, {}, {}, {})
    assert {"hare", "none"} <= outcomes


def test_rendering_and_wrong_use() -> None:
    with pytest.raises(UserError, match="render_mode is 'human'"):
        HuntEnv(render_mode="human")
    with pytest.raises(RuntimeError, match="reset"):
        HuntEnv().step({})
    env = HuntEnv(game_config("msh_tiny"), render_mode="ansi")
    env.reset(seed=0)
    assert "S" in env.render() and env.render().startswith("t 0/8")
    env = HuntEnv("msh_tiny", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3
    assert HuntEnv("msh_tiny").render() is None


def test_a_missing_or_wrong_action_is_a_sentence() -> None:
    env = HuntEnv("msh_4x4")
    env.reset(seed=0)
    good = dict.fromkeys(env.agents, 4)
    with pytest.raises(
        UserError, match=r"The action of player_2 is missing, expected a whole number from 0 \(up\) to 6"
    ):
        env.step({agent: 4 for agent in env.agents if agent != "player_2"})
    for wrong in (1.5, "up", None, np.array([1, 2])):
        with pytest.raises(UserError, match=r"The action of player_3 is .* expected a whole number"):
            env.step({**good, "player_3": wrong})  # type: ignore[dict-item]
    for wrong in (-1, 7):
        with pytest.raises(UserError, match=rf"The action of player_1 is {wrong}, expected a whole number from 0"):
            env.step({**good, "player_1": wrong})
    assert env.state().sum() == 9  # nothing happened
    env.step({**good, "player_1": np.int64(3), "player_4": np.array(2)})  # type: ignore[dict-item]
    assert len(env.agents) == 4
