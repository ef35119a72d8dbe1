"""What finished episodes say about their players."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.players.episodes import describe, episode_report, keep_evaluation, team_optimum
from marlab.hunt.players.rollout import play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from tests.hunt.helpers import seeded

TINY = game_config("msh_tiny")


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


REPORT: dict[str, Any] = {
    "reward": {"value": 2.5, "low": 2.0, "high": 3.0},
    "reward_learners": {"value": 2.25},
    "reward_player": [{"value": 2.0}, {"value": 3.0}],
    "seat_spread": 1.0,
    "length": 7.5,
    "outcomes": {"none": 0.25, "stag_2": 0.75},
}
EVALUATION: dict[str, Any] = {
    **{mode: {"seeds": {"3": REPORT}, "over_seeds": REPORT} for mode in ("sampled", "greedy")},
    "baseline": {"rule": "NS", "gain": {"value": 0.25, "low": 0.1, "high": 0.4}},
}


def test_results_and_file(tmp_path: Path) -> None:
    with Run.open("hunt", PPOTrainConfig(), RunOptions(output_dir=tmp_path / "run")) as run:
        assert keep_evaluation(run, EVALUATION) is EVALUATION
        assert run.results["gain"]["note"] == "learners' reward less that of NS players"
    results = read_run(tmp_path / "run").results
    assert results["reward_greedy"]["value"] == 2.5 and results["seat_spread_sampled"] == 1.0
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text()) == EVALUATION


def test_the_table_has_a_line_per_seed_and_mode() -> None:
    lines = describe(EVALUATION).splitlines()
    assert len(lines) == 3 and lines[1].startswith("sampled") and lines[2].startswith("greedy")
    assert "2.00 3.00" in lines[1] and "stag_2 0.75" in lines[1]
