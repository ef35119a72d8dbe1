"""`hunt compare`: trainings in one figure, joined by name, beside the original's curves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from marlab.hunt.diagnose.compare import CompareConfig, compare, main
from marlab.hunt.diagnose.curves import level_rows, open_training
from marlab.hunt.game.config import game_config
from marlab.hunt.players.published import REWARD_CURVES
from marlab.lab.errors import UserError
from tests.hunt.training_records import falling, rising, write_training


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, Path]:
    return {
        "ppo": write_training(tmp_path / "ppo", "ppo", seeds=(0, 1, 2, 3, 4)),
        "plus": write_training(tmp_path / "plus", "hopplus"),
        "mcts": write_training(tmp_path / "mcts", "hopplus-mcts", reward=falling),
        "more": write_training(tmp_path / "more", "hopplus-mcts", reward=falling, seeds=(5, 6)),
    }


def test_the_command_draws_all_and_says_where_they_came_to(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main([*(str(runs[k]) for k in ("ppo", "plus", "mcts")), "--output-dir", str(out), "--smooth", "3"]) == 0
    said = capsys.readouterr().out
    assert (out / "trainings.png").stat().st_size > 50_000
    told = {row["training"]: row for row in json.loads((out / "trainings.json").read_text())}
    assert list(told) == ["PPO", "original's PPO", "HOP+", "original's HOP+", "HOP+-MCTS", "original's HOP+-MCTS"]
    assert told["PPO"]["seeds"] == 5 and told["HOP+-MCTS"]["end / highest"] < 0.6
    assert told["original's HOP+-MCTS"]["highest"] == 1.5
    assert all(name in said for name in told)


def test_levels_are_means_over_seeds(runs: dict[str, Path]) -> None:
    training = open_training(runs["plus"], "plus")
    assert training.reward.shape == (2, 40) and np.isnan(training.reward[:, :2]).all()
    best, end = training.level()
    mean = [rising(t) + 0.01 for t in range(2, 40)]
    assert end == pytest.approx(np.mean(mean[-4:])) and best == pytest.approx(np.mean(mean[-10:]))
    assert training.hours[-1] == pytest.approx(0.4)
    assert level_rows([training])[0][4] == pytest.approx(mean[0])


def test_a_training_that_was_stopped_is_not_drawn_as_a_whole_one(tmp_path: Path) -> None:
    whole, part = (open_training(write_training(tmp_path / str(n), "hop", planned=n), "") for n in (40, 80))
    assert whole.share[-1] == 1.0 and part.share[-1] == pytest.approx(0.5)


def test_runs_of_one_name_are_joined(runs: dict[str, Path], tmp_path: Path) -> None:
    config = CompareConfig(runs=(f"mcts={runs['mcts']}", f"mcts={runs['more']}"), output_dir=tmp_path / "out")
    (found,) = compare(config)
    assert found.seeds == (0, 1, 5, 6) and found.reward.shape == (4, 40)


def test_runs_of_one_variant_keep_their_own_names(runs: dict[str, Path], tmp_path: Path) -> None:
    found = compare(
        CompareConfig(runs=(str(runs["mcts"]), str(runs["more"]), str(runs["ppo"])), output_dir=tmp_path / "out")
    )
    assert [training.name for training in found] == ["mcts", "more", "PPO"]


def test_what_cannot_be_compared_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    big = write_training(tmp_path / "big", "hop", game=game_config("msh_8x8_b5"))
    with pytest.raises(UserError, match="different games"):
        compare(CompareConfig(runs=(str(big), str(runs["ppo"]))))
    with pytest.raises(UserError, match="Two runs are named"):
        compare(CompareConfig(runs=(f"a={runs['plus']}", f"a={runs['mcts']}")))
    with pytest.raises(UserError, match="Say which trainings"):
        CompareConfig()
    (runs["plus"] / "metrics.jsonl").write_text("")
    with pytest.raises(UserError, match="no metrics to draw"):
        compare(CompareConfig(runs=(str(runs["plus"]),)))


def test_the_notes_curves_are_whole() -> None:
    for curve in REWARD_CURVES.values():
        assert list(curve.points) == sorted(curve.points) and curve.points[0][0] == 0
        assert curve.hours > 0 and all(0.5 < value < 3 for _, value in curve.points)
