"""What `import marlab.WORLD` offers: the list itself, that every name works, and that importing it costs nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import marlab.fish as fish
import marlab.hunt as hunt
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions

NAMES = {
    "fish": ["FishTrainConfig", "FishWorld", "SeaConfig", "evaluate", "load", "make_env", "train"],
    "hunt": ["GameConfig", "RulePlayers", "diagnose", "evaluate", "load", "make_game", "parallel_env", "train"],
    "market": [
        "AgentSettings", "DayState", "LitaAgentHRL", "collect", "make_samples", "open_dataset", "play", "train",
    ],
}  # fmt: skip
"""A name enters this list together with what makes it work; one that leaves it breaks somebody's program."""


@pytest.mark.parametrize("world", NAMES)
def test_the_list_is_as_promised_and_every_name_is_there(world: str) -> None:
    module = importlib.import_module(f"marlab.{world}")
    assert sorted(module.__all__) == NAMES[world]
    for name in NAMES[world]:
        if name == "LitaAgentHRL":
            pytest.importorskip("scml")
        assert callable(getattr(module, name)), name
        assert name in dir(module)
    with pytest.raises(AttributeError, match="has no attribute 'tain'"):
        _ = module.tain


def test_a_world_is_imported_without_what_only_its_use_needs() -> None:
    heavy = ("torch", "scml", "negmas", "matplotlib", "tyro", "pettingzoo")
    code = f"import sys, marlab.fish, marlab.hunt, marlab.market; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_world_is_imported_where_gymnasium_is_missing() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import marlab.fish; marlab.fish.SeaConfig()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("order", ["import marlab.fish, gymnasium", "import gymnasium"])
def test_gymnasium_knows_the_sea(order: str) -> None:
    name = "FishEscape-v0" if "marlab" in order else "marlab.fish:FishEscape-v0"
    subprocess.run([sys.executable, "-c", f"{order}; gymnasium.make('{name}', num_fish=3).reset(seed=0)"], check=True)


def test_a_room_with_the_name_of_a_function_can_be_called() -> None:
    from marlab.market import collect  # noqa: F401

    with pytest.raises(UserError, match="Name an agent"):
        hunt.evaluate()
    with pytest.raises(UserError, match="Say which run"):
        hunt.diagnose()


def test_the_shipped_shoal_plays_in_its_environment() -> None:
    shoal = fish.load("best")
    env, policy = shoal.env(num_fish=12), shoal.policy()
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation) and env.action_space.contains(policy(observation))
    for _ in range(60):
        observation, _, terminated, truncated, info = env.step(policy(observation))
        assert not (terminated or truncated)
    assert info["num_alive"] >= 11  # scripts that flee lose more
    drawn = shoal.policy(greedy=False, seed=3)
    assert np.array_equal(drawn(observation), shoal.policy(greedy=False, seed=3)(observation))


def test_a_saved_shoal_is_the_same_shoal(tmp_path: Path) -> None:
    shoal = fish.load("best")
    shoal.save(tmp_path / "mine.pt")
    again = fish.load(tmp_path / "mine.pt")
    assert again.sea == shoal.sea
    rows = np.random.default_rng(0).normal(size=(50, shoal.sea.observation_size)).astype(np.float32)
    assert np.array_equal(again.policy()(rows), shoal.policy()(rows))


def test_a_file_wins_over_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "best").write_text("not a checkpoint")
    with pytest.raises(UserError):
        fish.load("best")
    (tmp_path / "hop_4x4").write_text("not a checkpoint")
    with pytest.raises(UserError):
        hunt.load("hop_4x4")


def test_an_unknown_name_is_answered_with_the_shipped_ones() -> None:
    with pytest.raises(UserError, match="one of the shipped best"):
        fish.load("bets")
    with pytest.raises(UserError, match="Shipped agents: hop_4x4, hop_8x8_b5"):
        hunt.load("hop_44")


def test_a_training_gives_a_policy_and_its_environment(tmp_path: Path) -> None:
    run = fish.train(
        preset="quickstart", total_iterations=1, num_envs=4, n_steps=8, batch_size=32, curriculum="6:1",
        multi_eval_interval=0, skip_final_eval=True, video_num_fish=0, device="cpu", quiet=True,
        options=RunOptions(output_dir=tmp_path / "run"),
    )  # fmt: skip
    env, policy = run.env(), run.policy()
    observation, _ = env.reset(seed=0)
    assert env.action_space.contains(policy(observation))
    assert fish.load(run).sea == run.shoal.sea
    with pytest.raises(UserError, match="not both"):
        fish.train(fish.FishTrainConfig(), num_envs=3)
    with pytest.raises(UserError, match="unknown key 'num_env'"):
        fish.train(num_env=3)


@pytest.mark.parametrize("name", ["hop_4x4", "hop_8x8_b5"])
def test_shipped_planners_meet_at_the_stag_with_a_hunter(name: str) -> None:
    from marlab.hunt.players.policy import Team
    from marlab.hunt.players.rollout import play
    from marlab.hunt.players.seats import parse_role

    planner = hunt.load(name)
    generator = torch.Generator().manual_seed(0)
    game = hunt.make_game(planner.game, generator, maps=4)
    me = planner.policy(game, seats=[0], simulations=16, trees=2)
    others = hunt.RulePlayers(game, [parse_role(word) for word in ("NS", "NS", "NH", "NH")])
    with torch.no_grad():
        episodes = play(game, Team(game, [me, others], [0, 1, 1, 1]), 6, generator)
    assert float(episodes.reward[:, 0].mean()) > 3.0  # with the hunter 5, alone at the hares 1


def test_gymnasium_ids_stay() -> None:
    assert {"FishEscape-v0", "FishEscapeSingle-v0"} <= set(gymnasium.registry)
