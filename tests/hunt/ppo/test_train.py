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
from marlab.hunt.ppo.config import NetworkConfig
from marlab.hunt.ppo.learners import SeedWorld
from marlab.hunt.ppo.network import NetworkPolicy, load_agents
from marlab.hunt.ppo.train import PPOTrainer, train_ppo
from marlab.hunt.ppo.world import HuntWorld
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.runs.judged import read_cases
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.testing import assert_resume_equal
from tests.hunt.helpers import seeded
from tests.hunt.ppo_cases import TINY, play_random, small

# --- statistics -----------------------------------------------------------------------------------------------------


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
    info = read_run(path)
    assert info.judged.key(info.results) == "reward_learners_sampled" and info.judged.metric == "episode/reward"
    by_seed = {seed: {"fresh episodes": found["sampled"]["seeds"][seed]["reward"]["value"]} for seed in ("2", "5")}
    assert read_cases(path)["reward_learners_sampled"] == read_cases(path)["reward_sampled"] == by_seed  # all learn
    assert (path / "figures" / "reward.png").stat().st_size > 10_000
    names = json.loads((path / "metrics.jsonl").read_text().splitlines()[-1])
    for name in (
        "episode/reward",
        "seed_5/episode/reward_player_2",
        "seed_2/ppo/player_1/value_error",
        "seed_2/ppo/player_2/value_loss",
        "time/rollout",
        "time/steps_per_second",
    ):
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
