"""PPO baseline: who learns from which rows, statistics per seed, resumption, files, and a game it must solve."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.hunt.commands import train as command
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.views import View
from marlab.hunt.players.episodes import episode_report, team_optimum
from marlab.hunt.players.rollout import play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, parse_seats, parse_seeds
from marlab.hunt.ppo.config import NetworkConfig, PPOTrainConfig
from marlab.hunt.ppo.learners import Crowd, SeedWorld, value_errors
from marlab.hunt.ppo.network import NetworkPolicy, PlayerNet, load_agents
from marlab.hunt.ppo.train import PPOTrainer, train_ppo
from marlab.hunt.ppo.world import HuntWorld
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.ppo.ppo import Rollout
from marlab.lab.ppo.ppo import View as PPOView
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.testing import assert_resume_equal
from tests.hunt.helpers import seeded

TINY = game_config("msh_tiny")
SMALL = PPOConfig(n_steps=12, n_epochs=2, batch_size=64, learning_rate=1e-3, gamma=0.95)


def small(**changes: object) -> PPOTrainConfig:
    base = PPOTrainConfig(
        game=TINY, num_envs=8, total_steps=12 * 8 * 4, ppo=SMALL, network=NetworkConfig(hidden=(16,)), eval_episodes=20
    )
    return replace(base, **changes)  # type: ignore[arg-type]


# --- the command's words --------------------------------------------------------------------------------------------


def test_seeds() -> None:
    assert parse_seeds("0..4") == (0, 1, 2, 3, 4)
    assert parse_seeds("3") == (3,)
    assert parse_seeds("1,5,7..8") == (1, 5, 7, 8)
    for wrong in ("", "a", "4..1", "1,1", "0..x", "-1"):
        with pytest.raises(UserError, match="seeds is"):
            parse_seeds(wrong)


def test_seats() -> None:
    assert parse_seats("", 4)[0] == (0, 1, 2, 3)
    seats, roles = parse_seats("NS,PPO,SWITCH(3,NH),PPO", 4)
    assert seats == (1, 3)
    assert roles[0].kind == Kind.NS and roles[2].kind == Kind.SWITCH and roles[2].reverse
    for wrong, told in (("PPO,NS", "2 players"), ("NS,NS,NS,NS", "nobody"), ("PPO,XX,NS,NS", "not a player")):
        with pytest.raises(UserError, match=told):
            parse_seats(wrong, 4)


@pytest.mark.parametrize(
    "wrong", [{"num_envs": 0}, {"total_steps": -1}, {"seeds": "x"}, {"agent_roles": "NS,NS"}, {"entropy_end": -0.1}]
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        small(**wrong)
    with pytest.raises(UserError, match="device"):
        PPOTrainer(small(device="nonsense"))


# --- who learns from what -------------------------------------------------------------------------------------------


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


def test_learner_sees_the_game_from_its_own_seat() -> None:
    trainer = PPOTrainer(small(game=game_config("msh_4x4"), agent_roles="NS,NS,PPO,NS"))
    world = trainer.world.world
    assert world.seats.unique().tolist() == [2]
    expected = View(world.game, world.state).flat(torch.tensor([2]))
    assert torch.equal(trainer.world.observe().obs, expected)


# --- the network ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mlp", "conv"])
def test_value_after_logits_is_the_value(kind: str) -> None:
    game = make_game(TINY)
    net = PlayerNet(game, NetworkConfig(kind=kind, hidden=(16, 8)), seeded(0))  # type: ignore[arg-type]
    obs = View(game, game.reset(5, seeded(1))).flat(torch.arange(2))
    alone = net.value(obs)
    net.logits(obs)
    assert torch.equal(net.value(obs), alone)
    with torch.no_grad():
        net.logits(obs)
    assert net.value(obs).requires_grad  # features made without gradients are not taken
    net.logits(obs)
    net.value(obs)
    with torch.no_grad():
        net.critic.bias += 1.0
        next(net.body.parameters()).mul_(0.5)
    fresh = net.value(obs)  # the same tensor again, after the weights changed: nothing old is used
    assert not torch.allclose(fresh, alone + 1.0)


def test_network_policy_keeps_to_the_rules() -> None:
    game = make_game(TINY)
    nets = [PlayerNet(game, NetworkConfig(hidden=(8,)), seeded(i)) for i in range(2)]
    policy = NetworkPolicy(game, nets, [1, 0])
    view = View(game, game.reset(500, seeded(2)))
    chances = policy.probabilities(view, {})
    assert bool((chances[~view.mask] == 0).all())
    torch.testing.assert_close(chances.sum(2), torch.ones(500, 2))
    actions, _ = policy.act(view, {}, seeded(3))
    assert bool(view.mask.gather(2, actions.unsqueeze(2)).all())
    flat = view.flat(torch.tensor([0]))  # seat 0 belongs to network 1
    torch.testing.assert_close(
        policy.logits(view)[:, 0][view.mask[:, 0]], nets[1].logits(flat)[:, 0][view.mask[:, 0]].detach()
    )
    with pytest.raises(ValueError, match="do not fit"):
        NetworkPolicy(game, nets, [0, 2])


# --- statistics -----------------------------------------------------------------------------------------------------


def play_random(world: SeedWorld, steps: int) -> None:
    generator = seeded(7)
    for _ in range(steps):
        mask = world.observe().mask
        assert mask is not None
        noise = torch.rand(mask.shape, generator=generator)
        world.step((mask * noise).argmax(-1))


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


def test_prosocial_players_are_taught_the_mean_and_reported_what_they_caught() -> None:
    results = []
    for prosocial in (False, True):
        game = make_game(game_config("msh_4x4", prosocial=prosocial))
        world = SeedWorld(HuntWorld(game, 50, seeded(0)), 1, 1.0)
        play_random(world, 60)
        results.append(world.pop_stats()[0])
    assert results[0].keys() == results[1].keys()
    for name, value in results[0].items():
        assert results[1][name] == pytest.approx(value), name


def test_value_errors_count_acting_rows_only() -> None:
    acting = torch.tensor([[True, False]])
    rollout = Rollout(2, PPOView(torch.zeros(1, 2, 1)), acting, 1)
    rollout.acting[:], rollout.terminated[:] = acting, True
    rollout.reward[:] = torch.tensor([[[3.0, 9.0]], [[1.0, 9.0]]])
    total, count = value_errors(rollout, SMALL)
    assert total.tolist() == [[10.0, 0.0]] and count.tolist() == [[2.0, 0.0]]


def test_team_optimum_and_report() -> None:
    assert team_optimum(GameConfig()) == 3.0
    assert team_optimum(game_config("msh_4x4_4h2s")) == 5.0
    assert team_optimum(TINY) == 5.0
    assert team_optimum(game_config("msg_8x8")) == 30.0
    game = make_game(GameConfig())
    episodes = play(game, RulePlayers(game, [Kind.NS, Kind.NS, Kind.NH, Kind.NH]), 500, seeded(0))
    report = episode_report(game.config, episodes)
    assert report["reward"]["value"] == pytest.approx(2.975, abs=0.03)
    assert report["seat_spread"] == pytest.approx(4.0, abs=0.1)
    assert report["outcomes"]["stag_2"] == pytest.approx(0.5, abs=0.01)
    assert sum(report["outcomes"].values()) == pytest.approx(1.0)
    focal = episode_report(game.config, episodes, [0])
    assert focal["reward_learners"] == focal["reward_player"][0] and focal["seat_spread"] == 0


# --- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"seeds": "0..1"},
        {"networks": "independent"},
        {"agent_roles": "MIX(0.5),PPO", "variant": "ps-ppo", "seeds": "1,4"},
    ],
)
def test_resume_equals_never_stopped(changes: dict[str, object], tmp_path: Path) -> None:
    assert_resume_equal(lambda: PPOTrainer(small(**changes)), 2, 2, tmp_path, ignore=("time/", "time/steps_per_second"))


def test_learns_to_hunt_together() -> None:
    """Two players and nothing but a stag: meeting there and striking at the same time pays 5 each."""
    fast = PPOConfig(n_steps=16, n_epochs=4, batch_size=512, learning_rate=3e-3, gamma=0.95, entropy_coef=0.01)
    game = replace(TINY, hares=0)
    config = small(game=game, num_envs=64, total_steps=64 * 16 * 25, ppo=fast, network=NetworkConfig(hidden=(64,)))
    trainer = PPOTrainer(config)
    name = "episode/reward"
    first = last = trainer.iterate()
    while trainer.step < trainer.total:
        last = trainer.iterate()
    assert first[name] < 1.5
    assert last[name] > 4.0
    assert last["outcome/stag_2"] > 0.8


def test_a_run_and_its_agents(tmp_path: Path) -> None:
    config = small(seeds="2,5", networks="independent")
    path = train_ppo(config, RunOptions(output_dir=tmp_path / "run"), quiet=True).path
    found = json.loads((path / "evaluation.json").read_text())
    assert set(found["sampled"]["seeds"]) == {"2", "5"}
    assert found["greedy"]["seeds"]["5"]["episodes"] == config.eval_episodes
    assert (path / "figures" / "reward.png").stat().st_size > 10_000
    names = json.loads((path / "metrics.jsonl").read_text().splitlines()[-1])
    for name in (
        "episode/reward", "seed_5/episode/reward_player_2",
        "seed_2/ppo/player_1/value_error", "seed_2/ppo/player_2/value_loss", "time/rollout", "time/steps_per_second",
    ):  # fmt: skip
        assert name in names, name

    agents = load_agents(path)
    game = make_game(TINY)
    view = View(game, game.reset(10, seeded(0)))
    trainer = PPOTrainer(config)
    while trainer.step < trainer.total:
        trainer.iterate()
    for seed in (2, 5):
        mine = trainer.policy(game, seed)
        assert isinstance(mine, NetworkPolicy)
        assert torch.equal(agents.policy(game, seed).logits(view), mine.logits(view))
    with pytest.raises(UserError, match="no seed 3"):
        agents.nets(game, 3)
    with pytest.raises(UserError, match=r"3x3 grid.*4x4 grid"):
        agents.nets(make_game(GameConfig()))
    with pytest.raises(UserError, match="no trained PPO agents"):
        load_agents(tmp_path)
    with pytest.raises(UserError, match="exists already"):
        train_ppo(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--variant ppo --preset msh_tiny --seeds 0..1 --total-steps 64 --num-envs 4 --ppo.n-steps 8".split()
    words += ["--agent-roles", "PPO,NH", "--eval-episodes", "5", "--output-dir", str(tmp_path / "run")]
    assert command(words) == 0
    assert "The run is in" in capsys.readouterr().out
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    assert stored["game"]["height"] == 3 and stored["seeds"] == "0..1"
    with pytest.raises(UserError, match="2 players"):
        command(["--agent-roles", "PPO,NS"])
