"""A shoal from Python: shipped, saved, trained, and in the environment that fits it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import marlab.fish as fish
import marlab.hunt as hunt
from marlab.fish.measure.policies import play, scripted
from marlab.fish.measure.probe import draw_seeds, greedy
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import SEAS, name_of
from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions


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


def test_an_environment_with_other_eyes_is_refused_in_a_sentence() -> None:
    shoal = fish.load("best")
    with pytest.raises(UserError, match=r"sees 11 numbers per fish.*\[4, 18\].*env"):
        shoal.policy()(np.zeros((4, 18), np.float32))


def test_a_saved_shoal_is_the_same_shoal(tmp_path: Path) -> None:
    shoal = fish.load("best")
    shoal.save(tmp_path / "mine.pt")
    again = fish.load(tmp_path / "mine.pt")
    assert again.sea == shoal.sea
    rows = np.random.default_rng(0).normal(size=(50, shoal.sea.observation_size)).astype(np.float32)
    assert np.array_equal(again.policy()(rows), shoal.policy()(rows))


def test_every_sea_has_a_shipped_shoal() -> None:
    for name in SEAS:
        if name != "v32":
            trained = fish.load(name).trained
            assert name_of(trained.sea) == name and trained.frame == "own"


def test_the_shipped_shoal_of_a_sea_lives_longer_than_fish_that_hold() -> None:
    trained = fish.load("pursuit").trained
    start, _ = seeded_reset(draw_seeds(np.random.default_rng(0), 2), trained.sea)
    players = scripted("hold"), greedy(trained.net)
    held, swam = (play(start, each, trained.sea, 60).survival.mean() for each in players)
    assert swam > held + 0.05


def test_a_file_wins_over_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "best").write_text("not a checkpoint")
    with pytest.raises(UserError):
        fish.load("best")
    (tmp_path / "hop_4x4").write_text("not a checkpoint")
    with pytest.raises(UserError):
        hunt.load("hop_4x4")


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
