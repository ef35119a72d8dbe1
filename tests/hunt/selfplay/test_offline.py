"""What offline data teaches before the first game."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.hunt.data.dataset import load_dataset
from marlab.hunt.game.config import GameConfig
from marlab.hunt.others.config import GoalSource, PretrainGoalsConfig
from marlab.hunt.others.models import GoalModels, LoadedModels, ModelSpec
from marlab.hunt.planner.agent import agents_of
from marlab.hunt.players.rollout import HARE, NONE, STAG, play
from marlab.hunt.pretraining.run import pretrain_goals
from marlab.hunt.selfplay.offline import goals_of, offline_experience, relabel_losers
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.lab.errors import UserError
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from tests.hunt.helpers import seeded
from tests.hunt.hop_cases import TINY, offline, small_mind, small_training


def test_hindsight_teaches_winners_deeds_and_other_goals_to_losers(tmp_path: Path) -> None:
    mind = small_mind("hop", own_moa=False)  # as in a warm start
    data = load_dataset(offline(tmp_path / "data"), TINY)
    rows = offline_experience(data, "train", mind.config, None, "cpu")
    steps = rows.select(torch.arange(64).unsqueeze(0))
    won = steps.value > 0
    assert 0 < int(won.sum()) < 64
    early, late = (relabel_losers(mind, steps, imagine) for imagine in (False, True))
    assert torch.equal(early[won], steps.policy[won]) and float(early[~won].sum()) == 0.0
    assert torch.equal(late[won], steps.policy[won])
    torch.testing.assert_close(late.sum(-1), torch.ones(1, 64))
    assert mind.others is not None
    lost = int((~won[0]).nonzero()[0])
    wanted = torch.tensor([1.0, 0.0])  # the stag, say: without a capture the data leaves it open
    steps.goal[0, lost, 0] = wanted
    legal = steps.rows[0, lost, : TINY.actions].bool()
    one = steps.rows[0, lost : lost + 1], steps.time[0, lost : lost + 1]
    logits = mind.others.moa.rows(*one, torch.eye(2)[1:].view(1, 1, 2), torch.zeros(1, dtype=torch.int64))[0][0, 0]
    hare = logits.masked_fill(~legal, -math.inf).softmax(0)  # who wanted the other prey
    torch.testing.assert_close(relabel_losers(mind, steps, True)[0, lost], hare, atol=1e-4, rtol=0)


def test_goals_are_what_was_captured_whatever_the_type(tmp_path: Path) -> None:
    """Types drawn anew change nothing; who caught nothing is judged by pretrained models, or by nobody."""
    data = load_dataset(offline(tmp_path / "data"), TINY)
    rows = offline_experience(data, "all", small_mind("hop").config, None, "cpu")
    outcome = data.part("all").rows.outcome
    for result, goal in ((STAG, [1.0, 0.0]), (HARE, [0.0, 1.0]), (NONE, [0.5, 0.5])):
        assert (rows.goal[outcome == result] == torch.tensor(goal)).all()
    models = LoadedModels(GoalModels(ModelSpec(TINY, "outcome", 4, 8, False), seeded(0)), None, 0)
    torch.nn.init.normal_(models.models.moa.actor.weight, generator=seeded(1))
    judged = offline_experience(data, "all", small_mind("hop").config, models, "cpu").goal
    data.rows.type.copy_(torch.randint(0, 2, data.rows.type.shape, generator=seeded(1)))
    again = offline_experience(data, "all", small_mind("hop").config, models, "cpu").goal
    assert torch.equal(judged, again) and not torch.equal(judged[outcome == NONE], rows.goal[outcome == NONE])


def test_models_that_do_not_fit_a_variant_are_refused() -> None:
    def models(source: GoalSource, hidden: int = 8) -> LoadedModels:
        return LoadedModels(GoalModels(ModelSpec(TINY, source, 4, hidden, False), seeded(0)), None, 0)

    config = small_mind("hop").config
    assert goals_of(config, models("type")).count == goals_of(config, None).count == 2
    with pytest.raises(UserError, match="goal source outcome or type, these have 'none'; pretrain with --goal-source"):
        goals_of(config, models("none"))
    with pytest.raises(UserError, match="hidden 16 and paths False, the planner hidden 8"):
        goals_of(config, models("outcome", 16))
    with pytest.raises(UserError, match="--load-moa"):
        goals_of(replace(config, variant="hopplus-mcts"), None)


@pytest.mark.long
def test_who_is_told_the_shortest_ways_predicts_better_around_obstacles(tmp_path: Path) -> None:
    game = GameConfig(height=6, width=6, max_block_comp=4)
    data = offline(tmp_path / "data", game, 6000)
    right = {}
    for paths in (False, True):
        made = PretrainGoalsConfig(
            data=data, goal_source="outcome", epochs=6, hidden=32, paths=paths, belief_games=0, overfit_check=False
        )
        run = pretrain_goals(made, RunOptions(output_dir=tmp_path / str(paths)), quiet=True)
        right[paths] = read_run(run.path).results["validation_top1"]
        config = small_training(game=game, paths=paths, load_data=data, load_moa=run.path, hidden=32)
        trainer = SelfPlayTrainer(config)
        trainer.warm_up()
    assert right[True] > right[False] + 0.08
    row = [trainer.iterate() for _ in range(3)][-1]
    assert all(math.isfinite(value) for value in row.values())
    saved = agents_of(trainer.agents(), "test")
    assert saved.config.paths and saved.mind.layout == trainer.learner.slow.layout
    assert play(trainer.game, saved.agent(trainer.game), 4, seeded(0)).reward.shape == (4, 4)
