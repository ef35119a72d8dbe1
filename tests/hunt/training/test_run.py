"""A training of planning agents as a run: a stopped one goes on, and its files are there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marlab.hunt.game.config import GameConfig
from marlab.hunt.planner.agent import load_hop
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, BETA, ENV_STEPS, REWARD, SCALED_SPREAD
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.training import phases
from marlab.hunt.training.run import draw_training, train_hop
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.testing import assert_same
from tests.hunt.hop_cases import offline, small_training


def test_a_stopped_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "SAVE_EVERY", 1)
    config = small_training()
    config = replace(config, pipeline=replace(config.pipeline, gates="warn"))
    answers = iter([False, False])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: next(answers, True))
        stopped = train_hop(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert stopped.status == "interrupted" and len(read_metrics(tmp_path / "run" / "metrics.jsonl")) < 4
    run = train_hop(config, RunOptions(output_dir=tmp_path / "run", resume=True), quiet=True)
    assert run.status == "finished" and len(read_metrics(run.path / "metrics.jsonl")) == 4
    results = read_run(run.path).results
    assert results["rollbacks"] == 0 and "reward_sampled" in results
    assert load_hop(run.path).config == config.mind


def test_a_record_becomes_a_figure(tmp_path: Path) -> None:
    """Variants without models of others have no curve of them."""
    rows = [
        {"step": t, ENV_STEPS: 10 * t, BETA: 5.0, SCALED_SPREAD: 0.2, f"seed_0/{REWARD}": 1.0 + t,
         f"seed_0/{BEHAVIOUR_ENTROPY}": 1.0}
        for t in range(3)
    ]  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = draw_training(tmp_path / "metrics.jsonl", tmp_path / "training.png", GameConfig(), [0], "a training")
    assert out.stat().st_size > 1000


# --- cut anywhere -----------------------------------------------------------------------------------------------------


def config_of(folder: Path) -> HopTrainConfig:
    config = small_training(load_data=folder / "data", total_steps=90)
    return replace(config, pipeline=replace(config.pipeline, gates="warn"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, and with a training that was never cut."""
    folder = tmp_path_factory.mktemp("whole")
    offline(folder / "data", rows=300)
    train_hop(config_of(folder), RunOptions(output_dir=folder / "whole"), quiet=True)
    return folder


@pytest.mark.parametrize("answers", [1, 5, 8], ids=["warm start", "halfway", "between iterations"])
def test_a_training_that_is_cut_anywhere_comes_to_the_same(whole: Path, tmp_path: Path, answers: int) -> None:
    """In the warm start, between two steps of the games, between iterations: weights and metrics equal to the bit."""
    asked = iter([False] * answers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: next(asked, True))
        stopped = train_hop(config_of(whole), RunOptions(output_dir=tmp_path / "cut"), quiet=True)
    assert stopped.status == "interrupted"
    assert bool(list(stopped.checkpoints.glob("state_*.pt"))) == (answers > 1)
    path = train_hop(config_of(whole), RunOptions(output_dir=tmp_path / "cut", resume=True), quiet=True).path
    assert_same(*(load_checkpoint(p / "agents.pt").state for p in (whole / "whole", path)))
    rows = [[_untimed(row) for row in read_metrics(p / "metrics.jsonl")] for p in (whole / "whole", path)]
    assert_same(*rows)
    assert [file.name for file in (path / "checkpoints").glob("memory_*")] == ["memory_3.pt"]
    assert not list((path / "checkpoints").glob("warm_*"))


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("time")}
