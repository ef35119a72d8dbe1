"""The adapters: public conformance suites, our own determinism test, and the original's wrapper."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from pettingzoo.test import parallel_api_test, parallel_seed_test

from marlab.fish.envs.gym import FishEscapeEnv, FishEscapeSingleEnv
from marlab.fish.envs.register import MANY, SINGLE, parallel_env, register
from marlab.fish.envs.vector import FishVectorEnv
from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.single import SingleFishView
from marlab.fish.sea.world import FishWorld
from marlab.lab.errors import UserError


def test_core_and_trainer_side_import_without_gymnasium() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = sys.modules['pettingzoo'] = None\n"
        "import marlab.fish.sea.world, marlab.fish.sea.single, marlab.fish.measure.policies, marlab.fish.envs.frame"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_registration_needs_no_torch() -> None:
    code = "import sys, marlab.fish.envs.register; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    register()  # a second time is harmless


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


def test_reset_with_a_seed_is_the_golden_reset_and_goes_on_without_one() -> None:
    env = FishEscapeEnv(num_fish=3, **COMPAT_SWITCHES)
    env.reset(seed=7)
    expected, _ = seeded_reset([7], SeaConfig(num_fish=3, **COMPAT_SWITCHES))
    assert torch.equal(env.arena.state.x, expected.x)
    env.reset()
    assert not torch.equal(env.arena.state.x, expected.x)


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


def test_single_prewarm_counters() -> None:
    env = FishEscapeSingleEnv(num_fish=2)
    env.enqueue_prewarm_velocity((0.5, 0.5))
    env.enqueue_prewarm_velocity((0.1, 0.2), front=True)
    first = env.reset(seed=0)[1]["pre_roll_stats"]
    assert first["prewarm_velocity"] == [0.1, 0.2] and env.prewarm_queue_length() == 1
    env.reset()
    env.reset()
    assert env.consume_prewarm_stats() == {"episodes": 3, "overridden": 2, "episodes_total": 3, "overridden_total": 2}
    assert env.consume_prewarm_stats()["episodes"] == 0


def test_single_view_of_the_batched_world_equals_the_wrapper() -> None:
    """Three arenas of the batched view against three single environments, through deaths."""
    cfg = SeaConfig(num_fish=4, **COMPAT_SWITCHES)
    seeds = [2, 5, 9]
    world = FishWorld(cfg, 3)
    world.set_state(seeded_reset(seeds, cfg)[0])
    view = SingleFishView(world)
    envs = [FishEscapeSingleEnv(num_fish=4) for _ in seeds]
    rows = np.stack([env.reset(seed=seed)[0] for env, seed in zip(envs, seeds)])
    rng = np.random.default_rng(0)
    for _ in range(500):
        np.testing.assert_allclose(view.observe()[:, 0].numpy(), rows, atol=1e-6)
        actions = rng.integers(0, 5, size=3)
        result = view.step(torch.from_numpy(actions)[:, None])
        steps = [env.step(action) for env, action in zip(envs, actions)]
        rows = np.stack([step[0] for step in steps])
        np.testing.assert_allclose(result.reward[:, 0].numpy(), [step[1] for step in steps], atol=1e-5)
        assert result.terminated[:, 0].tolist() == [step[2] for step in steps]
        assert not result.truncated.any()
    assert world.waiting.all() and not view.acting.any()
    view.step(torch.zeros(3, 1, dtype=torch.int64))
    assert view.watched.tolist() == [0, 0, 0] and view.acting.all()


def test_single_view_continues_bit_equal() -> None:
    def fresh(seed: int) -> SingleFishView:
        return SingleFishView(FishWorld(SeaConfig(num_fish=4), 5, seed=seed), "random", seed=seed)

    view, twin = fresh(1), fresh(2)
    actions = torch.randint(0, 5, (40, 5, 1), generator=torch.Generator().manual_seed(0))
    for action in actions[:20]:
        view.step(action)
    twin.load_state_dict(view.state_dict())
    for action in actions[20:]:
        view.step(action)
        twin.step(action)
        assert torch.equal(view.observe(), twin.observe())


def test_stable_baselines_trains_on_the_wrapper() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    env = gymnasium.make(SINGLE, num_fish=3)
    model = sb3.PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(64)
    action, _ = model.predict(env.reset(seed=0)[0], deterministic=True)
    assert env.action_space.contains(action)


# ---------------------------------------------------------------- many arenas


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


# ---------------------------------------------------------------- PettingZoo


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
