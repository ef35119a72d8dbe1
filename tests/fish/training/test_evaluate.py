"""Evaluation: the ladder, the ceiling, and files of other worlds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.fish.measure.config import EvalConfig
from marlab.fish.training.evaluate import evaluate, evaluate_checkpoint
from marlab.fish.training.networks import PATTERN, find_checkpoint
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.run import RunOptions


def test_eval_compares_with_the_ladder_and_the_ceiling(finished: Path, tmp_path: Path) -> None:
    settings = EvalConfig(str(finished), episodes=4, fish=6)
    report = evaluate_checkpoint(find_checkpoint(str(finished)), settings, tmp_path)
    assert set(report.scores) == {"policy", "random", "hold", "brake", "flee", "south", "sidestep"}
    assert report.bounds is not None and 0.5 < report.bounds[0] <= report.bounds[1] <= 1.0
    for score in report.scores.values():
        assert score.survival.mean() <= report.bounds[1] + 1e-9
    saved = json.loads((tmp_path / "eval_multi_summary.json").read_text())
    assert saved["policies"]["policy"]["survival"] == pytest.approx(float(report.scores["policy"].survival.mean()))


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    CheckpointStore(tmp_path, "hunt/ppo", PATTERN).save(1, {})
    with pytest.raises(UserError, match="written by 'hunt/ppo'"):
        evaluate(EvalConfig(str(tmp_path / "model_iter_1.pt")), RunOptions(output_dir=tmp_path / "eval"))
    assert not (tmp_path / "eval").exists()
