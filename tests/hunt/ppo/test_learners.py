"""Several learners in one world: rows, networks and statistics of each."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import STAY
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_roles
from marlab.hunt.ppo.learners import NetworkBatch, SeedWorld, value_errors
from marlab.hunt.ppo.train import PPOTrainer
from marlab.hunt.ppo.world import HuntWorld
from marlab.lab.ppo.ppo import Rollout
from marlab.lab.ppo.ppo import View as PPOView
from tests.hunt.helpers import seeded, small_game
from tests.hunt.ppo_cases import SMALL, small


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
    assert isinstance(crowd, NetworkBatch)
    obs = trainer.world.observe().obs
    for learner in trainer.learners:
        torch.nn.init.normal_(learner.ppo.net.actor.bias, generator=seeded(learner.place * 10 + (learner.seat or 0)))
    logits, value = crowd.logits(obs), crowd.value(obs)
    for learner in trainer.learners:
        mine = slice(learner.place * games, (learner.place + 1) * games)
        seats = slice(None) if learner.column is None else slice(learner.column, learner.column + 1)
        torch.testing.assert_close(logits[mine, seats], learner.ppo.net.logits(obs[mine, seats]))
        torch.testing.assert_close(value[mine, seats], learner.ppo.net.value(obs[mine, seats]))


def test_statistics_are_means_over_the_finished_episodes_of_a_seed() -> None:
    game, generator = small_game(game_config("msh_4x4")), seeded(1)
    others = RulePlayers(game, parse_roles("NS,RAND,NH,NH"))
    world = SeedWorld(HuntWorld(game, 256, generator, seats=(1,), others=others), 2, 0.5)
    reward, per_episode, over = torch.zeros(256), [[], []], torch.zeros(256, dtype=torch.bool)  # type: ignore[var-annotated]
    for _ in range(200):
        reward += world.step(torch.full((256, 1), STAY)).reward[:, 0] / 0.5
        over = world.world.over
        for seed, games in enumerate((slice(0, 128), slice(128, 256))):
            per_episode[seed] += reward[games][over[games]].tolist()
        reward[over] = 0
    for stats, mine in zip(world.pop_stats(), per_episode):
        assert stats["episodes"] == len(mine) > 60
        assert stats["reward_player_2"] == pytest.approx(sum(mine) / len(mine))
        assert stats["none"] + stats["hare"] + stats["stag_2"] + stats["stag_3"] + stats["stag_4"] == pytest.approx(1.0)
        assert stats["reward_player_3"] > 0.9 and stats["reward_player_1"] == 0.0  # NS alone never gets the stag
    assert world.pop_stats() == [{"episodes": 0.0}] * 2


def test_value_errors_count_acting_rows_only() -> None:
    acting = torch.tensor([[True, False]])
    rollout = Rollout(2, PPOView(torch.zeros(1, 2, 1)), acting, 1)
    rollout.acting[:], rollout.terminated[:] = acting, True
    rollout.reward[:] = torch.tensor([[[3.0, 9.0]], [[1.0, 9.0]]])
    total, count = value_errors(rollout, SMALL)
    assert total.tolist() == [[10.0, 0.0]] and count.tolist() == [[2.0, 0.0]]
