"""Training of planning agents: labels, ranks, replay, who learns from what, alarms and rollbacks, resumption, files."""

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
from marlab.hunt.planner.replay import Experience, RankedRewards, Replay, value_labels
from marlab.hunt.planner.rows import Symmetries, encode, row_layout
from marlab.hunt.players.rollout import play
from marlab.hunt.selfplay.config import GuardConfig
from marlab.hunt.selfplay.guard import Guard
from marlab.hunt.selfplay.learn import BestWeights, HopLearner
from marlab.hunt.selfplay.offline import examine, offline_experience, with_hindsight
from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.lab.runs.testing import assert_resume_equal
from tests.hunt.helpers import seeded, small_game
from tests.hunt.hop_cases import LEARN, TINY, offline, small_mind, small_training

# --- labels, ranks, replay ----------------------------------------------------------------------------------------


def test_value_labels() -> None:
    """Check 29: one reward of 5 at the last of four steps, discounted by 0.95."""
    found = value_labels(torch.tensor([0.0, 0.0, 0.0, 5.0]), 0.95)
    torch.testing.assert_close(found, torch.tensor([4.2869, 4.5125, 4.75, 5.0]), atol=1e-4, rtol=0)
    several = value_labels(torch.tensor([[1.0, 0.0, 2.0]]), 0.5)
    torch.testing.assert_close(several, torch.tensor([[1.5, 1.0, 2.0]]))


def test_ranked_rewards() -> None:
    """Check 30: the stream 1, 1, 1, 5 has the 75th percentile 2 (interpolated); at a tie a coin, or +1 at the top."""
    ranked = RankedRewards(torch.tensor([[1.0, 1.0, 1.0, 5.0]]))
    assert ranked.level.tolist() == [2.0]
    seed = torch.zeros(3, dtype=torch.int64)
    assert ranked.rank(torch.tensor([1.0, 2.5, 5.0]), seed, seeded(0)).tolist() == [-1.0, 1.0, 1.0]
    ties = RankedRewards(torch.tensor([[1.0, 1.0, 1.0, 1.0, 5.0]]))  # the percentile is 1 and is not the highest
    assert ties.level.tolist() == [1.0]
    drawn = ties.rank(torch.ones(4000), torch.zeros(4000, dtype=torch.int64), seeded(1))
    assert set(drawn.tolist()) == {-1.0, 1.0} and abs(float(drawn.mean())) < 0.06
    top = RankedRewards(torch.ones(1, 8))
    assert top.rank(torch.ones(50), torch.zeros(50, dtype=torch.int64), seeded(2)).tolist() == [1.0] * 50
    ranked.add(torch.full((1000,), 3.0), torch.zeros(1000, dtype=torch.int64))
    assert len(ranked.buffers[0]) == 1000 and ranked.level.tolist() == [3.0]


def _steps(values: list[float]) -> Experience:
    x = torch.tensor(values)
    n = len(values)
    return Experience(
        torch.zeros(n, 3, dtype=torch.uint8), x, torch.zeros(n, dtype=torch.int64), torch.zeros(n, 2), x,
        torch.zeros(n, 1, 2), torch.zeros(n, 2, 1, 2), torch.arange(n),
    )  # fmt: skip


def test_replay_keeps_the_newest_of_each_player() -> None:
    replay = Replay(2, 3, Experience(*(x[0] for x in _steps([0.0]))))
    replay.add(torch.tensor([0, 1, 0, 0]), _steps([1.0, 10.0, 2.0, 3.0]))
    replay.add(torch.tensor([0, 1]), _steps([4.0, 11.0]))
    assert replay.sizes.tolist() == [3, 2]
    drawn = replay.draw(torch.zeros(200, dtype=torch.int64), seeded(0))
    assert set(drawn.value.tolist()) == {2.0, 3.0, 4.0}
    assert set(replay.draw(torch.ones(200, dtype=torch.int64), seeded(0)).value.tolist()) == {10.0, 11.0}
    replay.add(torch.zeros(5, dtype=torch.int64), _steps([5.0, 6.0, 7.0, 8.0, 9.0]))  # more than it holds
    assert set(replay.draw(torch.zeros(200, dtype=torch.int64), seeded(1)).value.tolist()) == {7.0, 8.0, 9.0}


@pytest.mark.parametrize("paths", [False, True])
def test_turned_rows_are_the_rows_of_the_turned_game(paths: bool) -> None:
    """Turning the rows of a state and its action masks is the same as drawing the turned state."""
    game = small_game(TINY)
    state = game.reset(5, seeded(0))
    rows, legal = encode(game, state, torch.arange(2), paths)
    turns = Symmetries(row_layout(TINY, paths), "cpu")
    cells = torch.arange(9).view(3, 3)
    where = torch.rot90(cells, 1, (0, 1)).flatten().argsort()  # the turned number of every cell
    turned = state._replace(cell=where[state.cell], prey_cell=where[state.prey_cell])
    expected, mask = encode(game, turned, torch.arange(2), paths)
    assert torch.equal(rows[..., turns.rows[1]], expected)
    assert torch.equal(legal[..., turns.by_action[1]], mask)
    for which in range(len(turns)):
        action = torch.arange(game.actions)
        assert torch.equal(turns.by_action[which][turns.renamed[which]], action)


# --- learning ------------------------------------------------------------------------------------------------------


def test_every_seat_learns_about_every_other_equally() -> None:
    """W11: all observers get as many rows of each other player, of that player alone, with their own beliefs."""
    trainer = HopTrainer(small_training(game=replace(TINY, players=3, height=4, width=4)))
    for _ in range(8):
        trainer.iterate()
    replay, nets = trainer.replay, trainer.learner.fast.others
    assert nets is not None and bool((replay.written > 0).all())
    for ring in range(3):
        replay.store.value[ring] = float(ring)  # mark whose steps these are
        for slot in range(2):
            replay.store.goal[ring, :, slot] = float(10 * ring + slot)
    steps = trainer.learner._pairs(nets, replay, None)
    for observer in range(3):
        for slot in range(2):
            other = (observer + 1 + slot) % 3
            assert set(steps.value[observer, :, slot].tolist()) == {float(other)}
            assert set(steps.goal[observer, :, slot].flatten().tolist()) == {float(10 * other + slot)}


def test_a_batch_is_learnt_by_heart() -> None:
    mind = small_mind(seeds=(0, 1))
    learner = HopLearner(mind, replace(LEARN, symmetries=False, weight_decay=0.0, follow=0.0), seeded(0))
    game = small_game(TINY)
    state = game.reset(12, seeded(1))
    rows, legal = encode(game, state, torch.zeros(1, dtype=torch.int64))
    wanted = torch.nn.functional.one_hot(legal[:, 0].float().multinomial(1, generator=seeded(2)).squeeze(1), 7).float()
    n = len(wanted)
    steps = Experience(
        rows[:, 0], torch.zeros(n), wanted.argmax(1), wanted, torch.rand(n, generator=seeded(3)),
        torch.full((n, 1, 2), 0.5), torch.full((n, 2, 1, 2), 0.5), torch.zeros(n, dtype=torch.int64),
    )  # fmt: skip
    both = Experience(*(x.expand(2, *x.shape) for x in steps))
    for _ in range(400):
        found = learner.player_step(both, 1e-2, 0.0)
    assert float(found["policy"].max()) < 0.05 and float(found["value"].max()) < 0.005


def test_seeds_do_not_disturb_each_other() -> None:
    """A seed's networks start the same, whatever runs beside it."""
    alone, pair = small_mind(seeds=(3,)), small_mind(seeds=(1, 3))
    for name, weights in pair.one(3).state_dict().items():
        assert torch.equal(weights, alone.state_dict()[name]), name


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


# --- guard ---------------------------------------------------------------------------------------------------------


def test_a_seed_that_falls_goes_back_alone() -> None:
    mind = small_mind(seeds=(0, 1))
    learner = HopLearner(mind, LEARN, seeded(0))
    guard = Guard(GuardConfig(smoothing=0.0, drop=0.1, wait=2), 2, BestWeights(learner))
    good = {k: w.clone() for k, w in mind.state_dict().items()}
    assert guard.follow([2.0, 2.0]) == []
    with torch.no_grad():
        for weights in mind.parameters():
            weights += 1.0
    assert guard.follow([1.5, 2.1]) == [0]
    assert guard.follow([None, 2.1]) == [] and guard.rollbacks == [1, 0]
    for name, weights in mind.state_dict().items():
        if name == "others.goals":
            continue
        first, second = weights.unflatten(0, (2, -1))
        was, _ = good[name].unflatten(0, (2, -1))
        assert torch.equal(first, was) and not torch.equal(second, good[name].unflatten(0, (2, -1))[1])


def test_alarms() -> None:
    guard = Guard(GuardConfig(), 1, BestWeights(HopLearner(small_mind(), LEARN, seeded(0))))
    assert not any(guard.alarms(0.0, 1.5, 0.0, 9.0).values())  # too early
    assert guard.alarms(0.5, 1.5, 5.0, 0.1) == {"entropy": True, "q_spread": False, "moa_excess": False}
    assert guard.alarms(0.5, 0.5, 0.2, 0.9) == {"entropy": False, "q_spread": True, "moa_excess": True}
    assert not any(guard.alarms(0.5, 0.5, 5.0, None).values())


# --- the trainer -----------------------------------------------------------------------------------------------------


def test_resume(tmp_path: Path) -> None:
    data = offline(tmp_path / "data")
    config = small_training(seeds="0,2", load_data=data)
    assert_resume_equal(lambda: HopTrainer(config), 3, 2, tmp_path, ignore=("time/", "time/steps_per_second"))


@pytest.mark.parametrize("variant", ["direct-om", "mcts-random", "mcts-self", "wo-inter"])
def test_variants_train(variant: str) -> None:
    trainer = HopTrainer(small_training(variant=variant, independent=variant == "wo-inter"))
    rows = [trainer.iterate() for _ in range(4)]
    assert all(math.isfinite(v) for v in rows[-1].values())
    assert rows[-1]["plan/improved_share"] == 1.0  # beta Q on top of the prior cannot do worse than the prior
    parts = sum(rows[-1][f"time/{part}"] for part in ("select", "expand", "backup", "final"))
    assert 0 < parts < rows[-1]["time/rollout"]


def test_who_is_told_the_shortest_ways_predicts_better_around_obstacles(tmp_path: Path) -> None:
    game = GameConfig(height=6, width=6, max_block_comp=4)
    data = offline(tmp_path / "data", game, 6000)
    learn = replace(LEARN, warm_updates=200, batch_size=64, moa_batch_size=128)
    right = {}
    for paths in (False, True):
        config = small_training(game=game, paths=paths, load_data=data, learn=learn, hidden=32, maps=16)
        trainer = HopTrainer(config)
        unseen = offline_experience(load_dataset(data, game), "validation", config.mind, Goals.hunt(), None, "cpu")
        right[paths] = examine(trainer.learner.slow, unseen).top1
    assert right[True] > right[False] + 0.08
    row = [trainer.iterate() for _ in range(3)][-1]
    assert all(math.isfinite(value) for value in row.values())
    saved = agents_of(trainer.agents(), "test")
    assert saved.config.paths and saved.mind.layout == trainer.learner.slow.layout
    assert play(trainer.game, saved.agent(trainer.game), 4, seeded(0)).reward.shape == (4, 4)


def test_one_learner_among_rules_and_ranks() -> None:
    trainer = HopTrainer(small_training(agent_roles="HOP,NS", r2=True, num_envs=12))
    rows = [trainer.iterate() for _ in range(6)]
    pair = "moa/1->2"
    assert math.isfinite(rows[-1][f"{pair}/excess"]) and math.isfinite(rows[-1][f"{pair}/floor"])
    labels = trainer.replay.store.value[0, : int(trainer.replay.sizes[0])]
    assert set(labels.sign().tolist()) <= {-1.0, 1.0} and float(labels.abs().max()) == 1.0
    rings = trainer.learner._rings(trainer.replay)
    assert set(rings.flatten().tolist()) == {0}  # the rule-based seat's steps do not teach the learner


# --- the command's words --------------------------------------------------------------------------------------------
