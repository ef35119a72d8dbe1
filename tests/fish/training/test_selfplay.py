"""Self-play: who meets whom, what a predator earns, resumption to the bit, and the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from marlab.fish.measure.policies import scripted
from marlab.fish.sea.learned import load_predator
from marlab.fish.sea.seas import named_sea
from marlab.fish.training.networks import load_policy
from marlab.fish.training.selfplay import (
    HunterWorld,
    SelfPlayTrainer,
    answered,
    blocks,
    exploitability,
    mixed,
    selfplay,
)
from marlab.fish.training.selfplay_config import SelfPlayConfig
from marlab.lab.config import altered
from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.testing import assert_resume_equal
from tests.fish.build import sea_of

TINY = altered(
    SelfPlayConfig(rounds=1, iterations=2, num_envs=8, num_fish=3, hidden="8", eval_arenas=3, device="cpu"),
    n_steps=8, batch_size=64,
)  # fmt: skip


def test_every_opponent_has_arenas_and_the_newest_its_share() -> None:
    assert blocks(8, 1, 0.5) == [slice(0, 8)]
    assert blocks(8, 3, 0.5) == [slice(0, 2), slice(2, 4), slice(4, 8)]
    assert blocks(8, 3, 1.0) == [slice(0, 1), slice(1, 2), slice(2, 8)]


def test_a_block_is_hunted_by_its_own_predator() -> None:
    one = sea_of([(0.0, 0.0)], predator=(1.0, 2.0))
    state = type(one)(*(torch.cat([plane] * 3) for plane in one))
    move = mixed(
        [lambda s: s._replace(predator_x=s.predator_x + 1), lambda s: s._replace(predator_y=s.predator_y + 5)],
        [slice(0, 1), slice(1, 3)],
    )
    assert move(state).predator_position.tolist() == [[2.0, 2.0], [1.0, 7.0], [1.0, 7.0]]


def test_a_bite_is_worth_one() -> None:
    cfg = named_sea("intercept")
    world = HunterWorld(cfg, 2, [scripted("hold")], 0.5, 0, "cpu")
    bites, alive = 0.0, int(world.world.state.alive.sum())
    for _ in range(40):
        result = world.step(torch.full((2, 1), 2))
        close = 0.01 * 2  # at most
        bites += float(result.reward.sum())
    eaten = alive - int(world.world.state.alive.sum())
    assert eaten <= bites <= eaten + 40 * close
    assert not result.terminated.any()


def test_training_stops_and_goes_on_to_the_bit(tmp_path: Path) -> None:
    assert_resume_equal(lambda: SelfPlayTrainer(TINY), first=1, second=3, folder=tmp_path, ignore=("time/",))


def test_the_command_leaves_a_table_and_the_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = selfplay(TINY, RunOptions(output_dir=tmp_path), quiet=True)
    told = json.loads((run.path / "selfplay.json").read_text())
    assert set(told["means"]) == {"shoal 0", "shoal 1"} and set(told["means"]["shoal 0"]) == {"intercept", "predator 1"}
    assert load_predator(run.path / "predator_1.pt").hidden == (8,)
    assert load_policy(run.path / "shoal_1.pt").sea.num_fish == 3
    assert {"learned predator minus intercept", "next shoal wins back"} <= set(run.results)
    assert run.verdict
    (run.path / "selfplay.json").unlink()
    monkeypatch.setattr("marlab.fish.training.selfplay.survival_table", lambda *_: told["survival"])  # played above
    assert draw(read_run(run.path)).verdict == run.verdict
    assert json.loads((run.path / "selfplay.json").read_text()) == told


def test_stopped_in_its_first_round_it_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "should_stop", lambda run: True)
    run = selfplay(TINY, RunOptions(output_dir=tmp_path), quiet=True)
    assert run.unfinished and "--resume" in run.verdict[-1]


def test_exploitability_is_the_distance_to_the_best_worst_case() -> None:
    means = {"a": {"p": 0.9, "q": 0.3}, "b": {"p": 0.6, "q": 0.5}}
    shoals, predators = exploitability(means)
    assert shoals == pytest.approx({"a": 0.2, "b": 0.0})
    assert predators == pytest.approx({"p": 0.4, "q": 0.0})


def test_every_round_tells_what_its_predator_took_and_what_the_next_shoal_won_back() -> None:
    table = {
        "shoal 0": {"intercept": [0.9, 0.8], "predator 1": [0.2, 0.2], "predator 2": [0.1, 0.0]},
        "shoal 1": {"intercept": [0.9, 0.9], "predator 1": [0.8, 0.9], "predator 2": [0.7, 0.6]},
        "shoal 2": {"intercept": [0.8, 0.8], "predator 1": [0.8, 0.8], "predator 2": [0.9, 0.8]},
    }
    assert [[round(each["value"], 6) for each in answered(table, number)] for number in (1, 2)] == [
        [-0.65, 0.65], [-0.25, 0.2],
    ]  # fmt: skip
