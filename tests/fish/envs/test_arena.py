"""One arena: seeded resets and the records of step-one deaths."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.fish.envs.arena import Arena
from marlab.fish.envs.gym import FishEscapeEnv, FishEscapeSingleEnv, FishVectorEnv
from marlab.fish.envs.zoo import FishParallelEnv
from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.reset import seeded_reset
from marlab.lab.errors import UserError


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


def test_reset_with_a_seed_is_the_golden_reset_and_goes_on_without_one() -> None:
    env = FishEscapeEnv(num_fish=3, **COMPAT_SWITCHES)
    env.reset(seed=7)
    expected, _ = seeded_reset([7], SeaConfig(num_fish=3, **COMPAT_SWITCHES))
    assert torch.equal(env.arena.state.x, expected.x)
    env.reset()
    assert not torch.equal(env.arena.state.x, expected.x)


@pytest.mark.parametrize("native", [True, False])
def test_wrong_actions_and_wrong_moments_are_sentences(native: bool) -> None:
    arena = Arena(SeaConfig(num_fish=3), native)
    with pytest.raises(UserError, match="before step"):
        arena.step(np.zeros(3, int))
    with pytest.raises(UserError, match="before using"):
        arena.observation()
    arena.reset(np.random.default_rng(0))
    for wrong, what in (
        ([4], "shape"), (4, "shape"), (np.zeros(3), "whole"), ([0, 5, 0], "0 to 4"), ([-1, 0, 0], "0 to 4"),
        ([True, False, True], "whole"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=what):
            arena.step(np.asarray(wrong))
    while True:
        result = arena.step(np.full(3, 4))
        if result.terminated or result.truncated:
            break
    with pytest.raises(UserError, match="over"):
        arena.step(np.full(3, 4))
    arena.reset(np.random.default_rng(0))
    assert arena.step(np.full(3, 4)).info["timestep"] == 1


def test_the_adapters_refuse_them_too() -> None:
    single = FishEscapeSingleEnv(num_fish=2)
    single.reset(seed=0)
    for wrong in (77, 1.0, [1], True, None):
        with pytest.raises(UserError):
            single.step(wrong)  # type: ignore[arg-type]
    many = FishVectorEnv(2, num_fish=3)
    many.reset(seed=0)
    with pytest.raises(UserError, match="shape"):
        many.step(np.zeros((2, 1), int))
    zoo = FishParallelEnv(num_fish=2)
    with pytest.raises(UserError, match="reset"):
        zoo.state()
    zoo.reset(seed=0)
    with pytest.raises(UserError, match="fish_1 lives and has no action"):
        zoo.step({"fish_0": 1})
    with pytest.raises(UserError, match="0 to 4"):
        zoo.step({"fish_0": 1, "fish_1": 9})
