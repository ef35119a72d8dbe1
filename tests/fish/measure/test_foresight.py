"""Plans made with the true dynamics: played again they come to what was promised, and never to less than the policy."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from marlab.fish.measure.foresight import Changes, Plan, Search, improve, play_out, replay
from marlab.fish.measure.policies import play, scripted
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import SEAS

SMALL = Search(candidates=8, rounds=1, stride=20, window=30)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sea, "EPISODE_STEPS", 80)


def scene(name: str) -> tuple[SeaState, SeaConfig]:
    cfg = replace(SEAS[name], num_fish=6, include_neighbor_features=False)
    return seeded_reset([3, 4, 5, 6], cfg)[0], cfg


@pytest.mark.parametrize("name", ["pursuit", "pull"])
def test_no_arena_is_worse_than_the_policy_and_some_are_better(name: str) -> None:
    start, cfg = scene(name)
    swerve = scripted("swerve")
    alone = play(start, swerve, cfg, sea.EPISODE_STEPS).survival
    plan = improve(start, swerve, cfg, SMALL, torch.Generator().manual_seed(0))
    assert (plan.survival >= alone).all() and plan.survival.sum() > alone.sum()
    end = replay(start, plan.actions, cfg)
    assert torch.equal(end.death_step, plan.deaths)
    assert torch.equal(end.alive.float().mean(1), plan.survival)


def test_without_changes_the_plan_is_what_the_policy_does() -> None:
    start, cfg = scene("pursuit")
    plan = improve(start, scripted("slip"), cfg, replace(SMALL, seconds=0.0), torch.Generator())
    assert plan.actions.shape == (sea.EPISODE_STEPS, 4, 6)
    assert torch.equal(plan.deaths, play(start, scripted("slip"), cfg, sea.EPISODE_STEPS).final.death_step)


def test_changes_are_played_until_their_end_and_the_policy_from_there_on() -> None:
    start, cfg = scene("pursuit")
    brakes = torch.full((3, 4, 6), sea.BRAKE, dtype=torch.int8)
    plan: Plan = play_out(start, Changes(brakes, torch.tensor([0, 1, 2, 3])), scripted("left"), cfg, 5)
    first = (plan.actions == sea.BRAKE).sum(0)[:, 0]
    assert first.tolist() == [0, 1, 2, 3]
    assert (plan.actions[3:] == sea.LEFT).all()
