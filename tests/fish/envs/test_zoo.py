"""The PettingZoo adapter: public suites, and whole episodes that repeat."""

from __future__ import annotations

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from marlab.fish.envs.register import parallel_env


@pytest.mark.filterwarnings("ignore:.*infinity")
def test_pettingzoo_suites() -> None:
    parallel_api_test(parallel_env(num_fish=4), num_cycles=600)
    parallel_seed_test(lambda: parallel_env(num_fish=4))


def zoo_episode(seed: int) -> list[tuple]:
    env = parallel_env(num_fish=10)
    trace: list[tuple] = [env.reset(seed=seed)]
    rng = np.random.default_rng(seed)
    while env.agents:
        trace.append((*env.step({agent: int(rng.integers(5)) for agent in env.agents}), env.state()))
    return trace


def test_pettingzoo_full_episode_is_deterministic_and_agents_leave_when_they_die() -> None:
    first, second = zoo_episode(6), zoo_episode(6)
    assert len(first) == len(second)
    for a, b in zip(first[1:], second[1:]):
        assert a[1:4] == b[1:4] and np.array_equal(a[-1], b[-1])
        assert all(np.array_equal(a[0][agent], b[0][agent]) for agent in a[0])
    alive = set(first[0][0])
    for _, gains, terminated, truncated, _, _ in first[1:]:
        assert set(gains) == alive
        alive -= {agent for agent in alive if terminated[agent] or truncated[agent]}
        assert all(gains[agent] == -50 for agent in terminated if terminated[agent])
    assert not alive and any(first[-1][3].values())
