"""The adapters: public conformance suites, our own determinism test, and the original's wrapper."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from marlab.fish.envs.gym import FishEscapeEnv, FishEscapeSingleEnv, FishVectorEnv
from marlab.fish.envs.register import MANY, SINGLE
from marlab.fish.sea.config import COMPAT_SWITCHES
from marlab.lab.errors import UserError


@pytest.mark.parametrize("name", [MANY, SINGLE])
@pytest.mark.parametrize("neighbours", [True, False])
@pytest.mark.filterwarnings("ignore:.*Box observation space.*infinity")
def test_gymnasium_checker(name: str, neighbours: bool) -> None:
    env = gymnasium.make(
        f"marlab.fish.envs.register:{name}", num_fish=4, include_neighbor_features=neighbours, render_mode="rgb_array"
    )
    check_env(env.unwrapped)


def episode(env: gymnasium.Env, seed: int) -> list[tuple]:
    obs, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    trace: list[tuple] = [(obs, 0.0, False, False, info)]
    while not (trace[-1][2] or trace[-1][3]):
        trace.append(env.step(env.action_space.sample()))
    return trace


@pytest.mark.parametrize("make", [FishEscapeEnv, FishEscapeSingleEnv])
def test_same_seed_gives_the_same_episode_to_the_last_bit(make: type) -> None:
    first, second = episode(make(num_fish=6), 3), episode(make(num_fish=6), 3)
    assert len(first) == len(second) == 501
    for a, b in zip(first, second):
        assert np.array_equal(a[0], b[0]) and a[1:4] == b[1:4]
        assert a[4].keys() == b[4].keys()
        assert all(np.array_equal(a[4][key], b[4][key]) for key in a[4] if key != "pre_roll_stats")
    other = episode(make(num_fish=6), 4)
    assert not np.array_equal(first[0][0], other[0][0])


def test_time_limit_in_both_modes_and_the_last_info() -> None:
    fixed, compat = (
        episode(FishEscapeEnv(num_fish=8), 1)[-1],
        episode(FishEscapeEnv(num_fish=8, **COMPAT_SWITCHES), 1)[-1],
    )
    assert fixed[2:4] == (False, True) and compat[2:4] == (True, False)
    assert fixed[4]["timestep"] == 500
    deaths = fixed[4]["death_timesteps"]
    assert (deaths == -1).sum() == fixed[4]["num_alive"] == fixed[4]["alive_mask"].sum()
    dead = deaths[deaths > 0]
    assert fixed[4]["first_death_step"] == (dead.min() if len(dead) else -1)
    assert not fixed[0][deaths > 0].any()


def test_picture() -> None:
    env = FishEscapeEnv(num_fish=3, render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (800, 800, 3)
    with pytest.raises(UserError):
        FishEscapeEnv(render_mode="human")


# ---------------------------------------------------------------- the original's wrapper


def test_single_takes_turns_and_pays_the_mean() -> None:
    env, whole = FishEscapeSingleEnv(num_fish=5), FishEscapeEnv(num_fish=5, **COMPAT_SWITCHES)
    obs, info = env.reset(seed=2)
    rows, _ = whole.reset(seed=2)
    pointer = 0
    for step in range(60):
        living = np.flatnonzero(whole.arena.state.alive[0].numpy())
        place = pointer % len(living)
        pointer = (place + 1) % len(living)
        assert info["sampled_fish_index"] == living[place]
        assert np.array_equal(obs, rows[living[place]])
        obs, gain, *_, info = env.step(step % 5)
        rows, mean, *_ = whole.step(np.full(5, step % 5))
        assert gain == pytest.approx(mean) and info["single_reward"] == gain and info["final_num_alive"] is None


def test_single_prewarm_velocities_come_in_order() -> None:
    env = FishEscapeSingleEnv(num_fish=2)
    env.enqueue_prewarm_velocity((0.5, 0.5))
    env.enqueue_prewarm_velocity((0.1, 0.2), front=True)
    first = env.reset(seed=0)[1]["pre_roll_stats"]
    assert first["prewarm_velocity"] == [0.1, 0.2] and len(env.arena.prewarm) == 1
    overridden = [env.reset()[1]["pre_roll_stats"]["prewarm_velocity_override"] for _ in range(2)]
    assert [bool(x) for x in overridden] == [True, False]


def test_stable_baselines_trains_on_the_wrapper() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    env = gymnasium.make(SINGLE, num_fish=3)
    model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(64)
    action, _ = model.predict(env.reset(seed=0)[0], deterministic=True)
    assert env.action_space.contains(action)


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
