"""A training of planning agents as a run: a stopped one goes on, and its files are there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from marlab.hunt.game.config import GameConfig
from marlab.hunt.planner.agent import load_hop
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, BETA, ENV_STEPS, REWARD, SCALED_SPREAD
from marlab.hunt.training.run import draw_training, train_hop
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from tests.hunt.hop_cases import small_training


def test_a_stopped_training_goes_on(tmp_path: Path) -> None:
    config = small_training(save_every=1)
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
