"""The PettingZoo environment: the public suite, repetition by seed, and what an episode pays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from marlab.market.envs.zoo import MarketParallelEnv
from marlab.market.vector.rounds import END, HALVES
from tests.market.vector_worlds import small_config


def small() -> MarketParallelEnv:
    return MarketParallelEnv(levels=2, factories=2, days=2)


def test_the_public_suite_passes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_api_test(small(), num_cycles=100)


def test_the_same_seed_gives_the_same_world() -> None:
    parallel_seed_test(small, num_cycles=50)


def play(env: MarketParallelEnv, op: int | None, seed: int = 0) -> tuple[int, dict[str, float]]:
    """An episode of one answer everywhere, or of random ones; steps and returns."""
    env.reset(seed=seed)
    for i, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed + i)
    steps, returns = 0, dict.fromkeys(env.possible_agents, 0.0)
    while env.agents:
        actions = {agent: env.action_space(agent).sample() for agent in env.agents}
        if op is not None:
            for action in actions.values():
                action[::4] = op
        _, rewards, over, cut, _ = env.step(actions)
        steps += 1
        for agent, reward in rewards.items():
            returns[agent] += reward
    assert all(over.values()) and not any(cut.values())
    return steps, returns


def test_an_episode_pays_the_score() -> None:
    env = small()
    steps, returns = play(env, None)
    assert steps == 2 * HALVES and env._batch is not None
    scores = env._batch.market.scores()[0].flatten().numpy()
    np.testing.assert_allclose(1 + np.array(list(returns.values())), scores, rtol=1e-6)


def test_without_trade_only_outside_contracts_count() -> None:
    config = small_config((1, 1), 3, supply_units=[[2] * 3], supply_price=[[10] * 3])
    _, returns = play(MarketParallelEnv(configs=config), END)
    # 2 units at 10 arrive on each day and are stored: .1 of the trading price for 2, 4 and 6 of them
    assert returns["factory_0_0"] == pytest.approx(-(60 + 12) / 1000) and returns["factory_1_0"] == 0


def test_nobody_can_offer_out_of_range() -> None:
    env = small()
    env.reset(seed=1)
    actions = {agent: env.action_space(agent).sample() for agent in env.agents}
    for action in actions.values():
        action[::4] = 1
    env.step(actions)
    assert env._batch is not None and env._batch.market.threads.running.all()
