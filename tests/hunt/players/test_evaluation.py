"""The end of a training: whole evaluations do not know of time limits, short ones say how short they are, verdicts."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import Game
from marlab.hunt.players import evaluation
from marlab.hunt.players.episodes import REWARD
from marlab.hunt.players.evaluation import FIRST, conclude, evaluate, evaluate_run, keep_time
from marlab.hunt.players.rollout import Episodes, play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.lab.runs import budget
from marlab.lab.runs.records import read_run
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from tests.hunt.helpers import small_game
from tests.lab.clock import Clock


class Rules:
    """Rule-based players instead of trained ones; a step of the games takes as long as asked for."""

    def __init__(self, kind: Kind = Kind.NS, seeds: tuple[int, ...] = (0,), pause: float = 0.0) -> None:
        self.kind, self.seeds, self.pause = kind, seeds, pause
        self.step = self.total = 4
        self.seats, self.roles = (0, 1), (Role(Kind.RAND),) * 2

    @cached_property
    def evaluation_game(self) -> Game:
        return small_game(game_config("msh_tiny"))

    def about(self) -> dict[str, Any]:
        return {"variant": "rules"}

    def episodes(self, mode: str, size: int, stream: str, tick: Callable[[], None]) -> list[Episodes]:
        def slowly() -> None:
            time.sleep(self.pause * size)
            tick()

        game = self.evaluation_game
        policy = RulePlayers(game, [self.kind] * 2)
        return [play(game, policy, size, Rngs(seed).torch(stream), tick=slowly) for seed in self.seeds]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time that passes in the games alone."""
    clock = Clock()
    for module in (budget, evaluation, sys.modules[__name__]):
        monkeypatch.setattr(module, "time", clock)
    return clock


def opened(folder: Path, minutes: float | None = None) -> Run:
    return Run.open("hunt", PPOTrainConfig(), RunOptions(output_dir=folder, time_limit=minutes))


def test_a_limit_that_is_long_enough_changes_nothing(tmp_path: Path) -> None:
    whole = evaluate(Rules(), 200)
    with opened(tmp_path / "run", 5.0) as run:
        assert evaluate_run(run, Rules(), 200, done=True, quiet=True) == whole
    assert run.status == "finished" and whole["sampled"]["seeds"]["0"]["episodes"] == 200


def test_a_short_time_gives_fewer_episodes_and_an_interrupted_run(tmp_path: Path, clock: Clock) -> None:
    with opened(tmp_path / "run", 3.0 / 60) as run:
        began = clock.now
        found = evaluate_run(run, Rules(pause=0.0005), 1000, done=True, quiet=True)
        spent = clock.now - began
    assert found is not None and FIRST <= found["sampled"]["seeds"]["0"]["episodes"] < 1000
    assert spent < 3.0 and (run.status, run.reason) == ("interrupted", "time limit")


def test_without_time_there_is_the_curve(tmp_path: Path, clock: Clock) -> None:
    trainer = Rules(pause=0.1)
    trainer.step = 2
    with opened(tmp_path / "run", 1.2 / 60) as run:
        writer = run.metrics()
        for step in (1, 2):
            writer.log(step, {REWARD: float(step)})
        drawn: list[int] = []
        assert conclude(run, trainer, 100, done=False, quiet=True, draw=lambda: drawn.append(1)) is None
    assert drawn == [1] and run.verdict[0].startswith("Players earned 2.000 an episode in the last iterations (1 of")
    assert run.verdict[1] == "Next: the same command with `--resume` goes on from here."


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Kind.NS, "The learners cannot be told from the rule"), (Kind.RAND, "The learners are worse than the rule")],
)
def test_verdicts_compare_with_rules_in_the_same_seats(tmp_path: Path, kind: Kind, words: str) -> None:
    with opened(tmp_path / "run") as run:
        evaluation = conclude(run, Rules(kind), 400, done=True, quiet=True, draw=lambda: None)
    assert evaluation is not None and run.status == "finished"
    first, second, third = run.verdict
    assert first.startswith(words) and "compared with NS players in their seats" in first
    assert "one seed" in second and f"marlab hunt eval {run.path}" in third
    kept = json.loads((run.path / "evaluation.json").read_text())
    assert read_run(run.path).results["gain"]["value"] == kept["baseline"]["gain"]["value"]


def test_a_start_is_no_merit_of_a_training_without_iterations(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as run:
        trainer = Rules(Kind.NS)
        trainer.step = 0
        conclude(run, trainer, 100, done=False, quiet=True, draw=lambda: None)
    assert run.verdict[0].startswith(
        "Training has taught nothing yet, for no iteration is done: what it starts from earns"
    )
    assert "stopped at 0 of" in run.verdict[1]


def test_several_seeds_have_an_interval_over_seeds() -> None:
    found = evaluate(Rules(Kind.RAND, seeds=(0, 1, 2)), 50)
    gain = found["baseline"]["gain"]
    means = [found["sampled"]["seeds"][seed]["reward_learners"]["value"] for seed in "012"]
    assert gain["low"] < gain["value"] < gain["high"]
    assert gain["value"] == pytest.approx(sum(means) / 3 - found["baseline"]["reward"]["value"])


def test_time_is_kept_back_by_the_pace_of_training(tmp_path: Path) -> None:
    with opened(tmp_path / "run", 10.0) as run:
        keep_time(run, 1000, 1)
        unknown = run.budget.expected("evaluation")
        keep_time(run, 1000, 1, {"episode/length": 10.0, "time/steps_per_second": 10_000.0})
        assert unknown == pytest.approx(120.0) and run.budget.expected("evaluation") == pytest.approx(1 + 1.25 * 2)
    with opened(tmp_path / "free") as run:
        keep_time(run, 1000, 1)
        assert run.budget.expected("evaluation") == 0
