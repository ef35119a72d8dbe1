"""The Gymnasium environment: the public checks, masks, scores, and a learner that uses the masks."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from marlab.lab.errors import UserError
from marlab.market.envs.gym import ACTIONS, NAME, OFFERS, MarketEnv


def small(level: str = "first", **more: object) -> MarketEnv:
    return MarketEnv(level, ("RandomStdAgent",), levels=2, factories=2, days=2, **more)  # type: ignore[arg-type]


def test_the_public_checks_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(small(), skip_render_check=True)


@pytest.mark.parametrize("level", ["first", "last"])
def test_an_episode_of_masked_random_actions_pays_the_score(level: str) -> None:
    env, draw = small(level), np.random.default_rng(0)
    env.reset(seed=3)
    total, over = 0.0, False
    while not over:
        mask = env.action_masks()
        assert mask.shape == (ACTIONS,) and mask[1]
        _, reward, over, cut, _ = env.step(draw.choice(np.flatnonzero(mask)))
        assert not cut
        total += reward
    assert env._batch is not None
    score = env._batch.market.scores().flatten()[env._seat]
    assert 1 + total == pytest.approx(float(score), rel=1e-6)


def test_callers_have_nothing_to_accept_at_first_and_days_end() -> None:
    env = small("last")
    env.reset(seed=1)
    mask = env.action_masks()
    assert not mask[0]
    allowed = {day for (_, _, day), right in zip(OFFERS, mask[2:]) if right}
    assert allowed == {0, 1}  # two days
    assert len(env._open) == 2
    env.step(2)
    assert len(env._open) == 1 and env._planned[0] > 0  # the second thread sees what the first has taken


def test_the_same_seed_gives_the_same_episode() -> None:
    seen = []
    for _ in range(2):
        env = small()
        first, _ = env.reset(seed=9)
        rows = [first]
        for action in (5, 8, 1, 20, 0):
            row, _, over, _, _ = env.step(action)
            rows.append(row)
            if over:
                break
        seen.append(np.stack(rows))
    np.testing.assert_array_equal(*seen)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UserError, match="level"):
        small("middle")
    with pytest.raises(UserError, match="others has 'Nobody', expected some of"):
        MarketEnv(others=("Nobody",))


def test_clones_and_the_rule_can_sit_around_the_learner() -> None:
    env = gymnasium.make(NAME, others=("PenguinAgent", "LitaAgentHRL", "RandomStdAgent"), levels=2, factories=3, days=2)
    seen = []
    for seed in (0, 0, 1):
        rows, over = [env.reset(seed=seed)[0]], False
        while not over:
            row, reward, over, _, _ = env.step(2)  # one unit at the lowest price for today, whatever the market is
            rows.append(np.append(row, reward))
        seen.append(np.concatenate(rows))
    np.testing.assert_array_equal(seen[0], seen[1])
    assert seen[0].shape != seen[2].shape or (seen[0] != seen[2]).any()


@pytest.mark.long
def test_maskable_ppo_learns_from_it() -> None:
    contrib = pytest.importorskip("sb3_contrib")
    model = contrib.MaskablePPO("MlpPolicy", small(), n_steps=64, batch_size=32, seed=0, device="cpu")
    model.learn(128)
    assert model.num_timesteps >= 128
