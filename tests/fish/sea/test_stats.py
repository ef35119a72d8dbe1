"""Statistics of the training world."""

from __future__ import annotations

import pytest
import torch

from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.world import FishWorld
from tests.fish.sea.test_world import play, slots


def test_statistics_equal_a_count_by_hand() -> None:
    world = FishWorld(SeaConfig(num_fish=6), 16, seed=5)
    returns = torch.zeros(16)
    for result in play(world, 500):
        returns += result.reward.mean(1)
    state, stats = world.get_state(), world.pop_stats()
    deaths = torch.where(state.death_step < 0, 1000, state.death_step)
    first = deaths.amin(1)
    first = first[first < 1000].double()
    assert stats["episodes"] == 16 and stats["episode_length"] == 500
    assert stats["survival_rate"] == pytest.approx(float((deaths > 500).double().mean()))
    assert stats["survival_at_500"] == stats["survival_rate"]
    for horizon in (100, 224):
        assert stats[f"survival_at_{horizon}"] == pytest.approx(float((deaths > horizon).double().mean()))
    lived = (deaths - 1).clamp(max=500).double()
    assert stats["avg_survival_rate"] == pytest.approx(float(lived.mean() / 500))
    assert stats["first_death_step"] == pytest.approx(float(first.mean()))
    assert stats["first_death_p10"] == pytest.approx(float(first.quantile(0.1)))
    assert stats["first_death_sample_size"] == len(first)
    assert stats["step_one_deaths"] == int((deaths == 1).sum()) and stats["step_one_fish"] == 96
    assert sum(map(sum, stats["step_one_bins"])) == stats["step_one_deaths"]
    assert stats["episode_return"] == pytest.approx(float(returns.mean()), rel=1e-4)
    assert sum(stats["reward_shares"].values()) == pytest.approx(1.0)
    assert stats["override_episodes"] == 16 and stats["override_ratio"] == 0.0
    empty = world.pop_stats()
    assert empty["episodes"] == 0 and empty["survival_rate"] is None and empty["override_ratio"] is None


def test_step_one_deaths_are_told_apart_by_stage() -> None:
    world = FishWorld(SeaConfig(num_fish=3), 4, seed=0)
    world.pop_stats()
    world.feed(slots(4, 1, position=0.0, stage=2))
    world.reset()
    state = world.get_state()
    state.x[0], state.y[0] = 0.0, 0.0
    world.set_state(state)
    world.step(torch.full((4, 3), 4))
    stats = world.pop_stats()
    assert stats["step_one_fish_by_stage"][3] == 12 and stats["step_one_deaths_by_stage"][3] >= 3
    assert sum(stats["step_one_deaths_by_stage"]) == stats["step_one_deaths"]
