"""`hunt compare`: trainings in one figure, joined by name, beside the original's curves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from marlab.hunt.diagnose.compare import CompareConfig, compare, main

from marlab.hunt.game.config import game_config
from marlab.lab.errors import UserError
from tests.hunt.training_records import falling, write_training


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
    printed = capsys.readouterr().out
    assert (out / "trainings.png").stat().st_size > 50_000
    levels = {row["training"]: row for row in json.loads((out / "trainings.json").read_text())}
    assert list(levels) == ["PPO", "original's PPO", "HOP+", "original's HOP+", "HOP+-MCTS", "original's HOP+-MCTS"]
    assert levels["PPO"]["seeds"] == 5 and levels["HOP+-MCTS"]["end / highest"] < 0.6
    assert levels["original's HOP+-MCTS"]["highest"] == 1.5
    assert all(name in printed for name in levels)
    judged = json.loads((out / "comparison.json").read_text())  # the one comparison of all worlds
    assert judged["measure"] == "episode/reward at the end" and len(judged["rows"][0]["by_training"]) == 5
    assert judged["best"] in printed


def test_runs_of_one_name_are_joined(runs: dict[str, Path], tmp_path: Path) -> None:
    config = CompareConfig(runs=(f"mcts={runs['mcts']}", f"mcts={runs['more']}"), output_dir=tmp_path / "out")
    (training,) = compare(config)
    assert training.seeds == (0, 1, 5, 6) and training.reward.shape == (4, 40)


def test_runs_of_one_variant_keep_their_own_names(runs: dict[str, Path], tmp_path: Path) -> None:
    trainings = compare(
        CompareConfig(runs=(str(runs["mcts"]), str(runs["more"]), str(runs["ppo"])), output_dir=tmp_path / "out")
    )
    assert [training.name for training in trainings] == ["mcts", "more", "PPO"]


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
