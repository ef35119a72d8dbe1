"""Statistics of the training world."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.stats import MEANS, pooled
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


def test_pooled_statistics_are_those_of_all_episodes_together() -> None:
    def some(episodes: int, survival: float, deaths: dict[int, int]) -> dict[str, Any]:
        counts = [deaths.get(step, 0) for step in range(sea.EPISODE_STEPS + 1)]
        return {
            **dict.fromkeys(MEANS),
            "survival_rate": survival,
            "episodes": episodes,
            "first_death_histogram": counts,
        }

    found = pooled([some(30, 0.5, {1: 20, 0: 10}), some(10, 0.9, {5: 10})])
    assert found["episodes"] == 40 and found["survival_rate"] == pytest.approx(0.6)
    assert found["first_death_sample_size"] == 30 and found["first_death_step"] == pytest.approx((20 + 50) / 30)
    assert found["first_death_p10"] == 1 and found["survival_at_100"] is None
