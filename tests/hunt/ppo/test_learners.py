"""Several learners in one world: rows, networks and statistics of each."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.ppo.learners import Crowd, SeedWorld, value_errors
from marlab.hunt.ppo.train import PPOTrainer
from marlab.hunt.ppo.world import HuntWorld
from marlab.lab.ppo.ppo import Rollout
from marlab.lab.ppo.ppo import View as PPOView
from tests.hunt.helpers import seeded
from tests.hunt.ppo_cases import SMALL, play_random, small


@pytest.mark.parametrize("networks", ["shared", "independent"])
def test_every_learner_gets_its_own_rows_only(networks: str) -> None:
    config = small(networks=networks, seeds="3..5", game=game_config("msh_4x4"), agent_roles="NS,PPO,NH,PPO")
    trainer = PPOTrainer(config)
    games, seeds, seats = config.num_envs, 3, trainer.seats
    owner = torch.tensor([[100 * s + seat for seat in seats] for s in range(seeds)])  # [S, L]
    owner = owner.repeat_interleave(games, 0).float()  # [S * B, L]
    acting = torch.rand(seeds * games, len(seats), generator=seeded(0)) < 0.7
    rollout = Rollout(config.ppo.n_steps, PPOView(owner.unsqueeze(-1)), acting, 1)
    rollout.obs[:], rollout.acting[:] = owner.unsqueeze(-1), acting
    seen = 0
    for learner in trainer.learners:
        part = learner.rows(rollout, games)
        ids = part.rows(part.reward, part.reward)["obs"].flatten()
        mine = [seat for seat in seats if learner.seat in (None, seat)]
        assert set(ids.tolist()) == {100.0 * learner.place + seat for seat in mine}
        assert part.value.shape[0] == config.ppo.n_steps + 1  # one value more than steps
        seen += len(ids)
    assert len(trainer.learners) == seeds * (1 if networks == "shared" else len(seats))
    assert seen == int(rollout.acting.sum())  # every acting row taught exactly one learner
    sizes = {learner.ppo.config.batch_size for learner in trainer.learners}
    assert sizes == {SMALL.batch_size // 2 if networks == "shared" else SMALL.batch_size // 4}


@pytest.mark.parametrize("networks", ["shared", "independent"])
def test_crowd_asks_the_right_network(networks: str) -> None:
    trainer = PPOTrainer(small(networks=networks, seeds="0,1"))
    crowd, games = trainer.collector.net, trainer.config.num_envs
    assert isinstance(crowd, Crowd)
    obs = trainer.world.observe().obs
    for learner in trainer.learners:
        torch.nn.init.normal_(learner.ppo.net.actor.bias, generator=seeded(learner.place * 10 + (learner.seat or 0)))
    logits, value = crowd.logits(obs), crowd.value(obs)
    for learner in trainer.learners:
        mine = slice(learner.place * games, (learner.place + 1) * games)
        seats = slice(None) if learner.column is None else slice(learner.column, learner.column + 1)
        torch.testing.assert_close(logits[mine, seats], learner.ppo.net.logits(obs[mine, seats]))
        torch.testing.assert_close(value[mine, seats], learner.ppo.net.value(obs[mine, seats]))


def test_stats_of_seeds_add_up_to_those_of_the_world() -> None:
    game = make_game(game_config("msh_4x4"))
    world = SeedWorld(HuntWorld(game, 60, seeded(0)), 3, 0.5)
    play_random(world, 80)
    whole, parts = world.world.pop_stats(), world.pop_stats()
    assert sum(p["episodes"] for p in parts) == whole["episodes"] > 60
    for name in ("reward", "length", "reward_player_2", "none", "hare", "stag_2"):
        mean = sum(p[name] * p["episodes"] for p in parts) / whole["episodes"]
        assert mean == pytest.approx(whole[name]), name
    assert world.pop_stats() == [{"episodes": 0.0}] * 3


def test_value_errors_count_acting_rows_only() -> None:
    acting = torch.tensor([[True, False]])
    rollout = Rollout(2, PPOView(torch.zeros(1, 2, 1)), acting, 1)
    rollout.acting[:], rollout.terminated[:] = acting, True
    rollout.reward[:] = torch.tensor([[[3.0, 9.0]], [[1.0, 9.0]]])
    total, count = value_errors(rollout, SMALL)
    assert total.tolist() == [[10.0, 0.0]] and count.tolist() == [[2.0, 0.0]]
