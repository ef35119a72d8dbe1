"""What offline data teaches before the first game."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.hunt.data.dataset import load_dataset
from marlab.hunt.game.config import GameConfig
from marlab.hunt.planner.agent import agents_of
from marlab.hunt.planner.mind import Goals
from marlab.hunt.players.rollout import play
from marlab.hunt.selfplay.offline import examine, offline_experience, with_hindsight
from marlab.hunt.selfplay.trainer import HopTrainer
from tests.hunt.helpers import seeded
from tests.hunt.hop_cases import LEARN, TINY, offline, small_mind, small_training


def test_hindsight_teaches_winners_deeds_and_other_goals_to_losers(tmp_path: Path) -> None:
    mind = small_mind("hop", own_moa=False)  # as in a warm start
    data = load_dataset(offline(tmp_path / "data"), TINY)
    rows = offline_experience(data, "train", mind.config, mind.goals, None, "cpu")
    steps = rows.select(torch.arange(64).unsqueeze(0))
    won = steps.value > 0
    assert 0 < int(won.sum()) < 64
    early, late = (with_hindsight(mind, steps, imagine) for imagine in (False, True))
    assert torch.equal(early[won], steps.policy[won]) and float(early[~won].sum()) == 0.0
    assert torch.equal(late[won], steps.policy[won])
    torch.testing.assert_close(late.sum(-1), torch.ones(1, 64))
    assert mind.others is not None
    lost = int((~won[0]).nonzero()[0])
    goal = int(steps.goal[0, lost, 0].argmax())
    legal = steps.rows[0, lost, : TINY.actions].bool()
    wide = steps.rows[:, lost : lost + 1].unsqueeze(2)
    logits = mind.others(wide, steps.time[:, lost : lost + 1])[0, 0, 0, 1 - goal]  # who wanted the other prey
    torch.testing.assert_close(late[0, lost], logits.masked_fill(~legal, -math.inf).softmax(0), atol=1e-4, rtol=0)


@pytest.mark.long
def test_who_is_told_the_shortest_ways_predicts_better_around_obstacles(tmp_path: Path) -> None:
    game = GameConfig(height=6, width=6, max_block_comp=4)
    data = offline(tmp_path / "data", game, 6000)
    learn = replace(LEARN, warm_updates=200, batch_size=64, moa_batch_size=128)
    right = {}
    for paths in (False, True):
        config = small_training(game=game, paths=paths, load_data=data, learn=learn, hidden=32, maps=16)
        trainer = HopTrainer(config)
        trainer.warm_up()
        unseen = offline_experience(load_dataset(data, game), "validation", config.mind, Goals.hunt(), None, "cpu")
        right[paths] = examine(trainer.learner.slow, unseen).top1
    assert right[True] > right[False] + 0.08
    row = [trainer.iterate() for _ in range(3)][-1]
    assert all(math.isfinite(value) for value in row.values())
    saved = agents_of(trainer.agents(), "test")
    assert saved.config.paths and saved.mind.layout == trainer.learner.slow.layout
    assert play(trainer.game, saved.agent(trainer.game), 4, seeded(0)).reward.shape == (4, 4)
