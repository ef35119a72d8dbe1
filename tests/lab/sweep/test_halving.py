"""Rungs: values up to their step, the best share goes on, and what cannot be compared."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.sweep.halving import decide, metric_named, score_at


def write(folder: Path, rows: list[dict[str, float]]) -> Path:
    folder.mkdir()
    text = "".join(json.dumps({"step": i + 1, "time": 1.0, **row}) + "\n" for i, row in enumerate(rows))
    (folder / "metrics.jsonl").write_text(text)
    return folder


def test_only_what_was_known_at_the_rung_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{"train/loss": float(i)} for i in range(1, 41)])
    assert score_at(path, "train/loss", 20) == 19.5  # the last tenth of 20 records
    assert score_at(path, "train/loss", 400) == 38.5
    assert math.isnan(score_at(path, "train/other", 20)) and math.isnan(score_at(tmp_path / "none", "x", 3))


def test_metrics_by_the_end_of_their_names(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{"train/loss": 1.0, "val/loss": 2.0, "train/score": 3.0}])
    assert metric_named("score", [path], 5) == "train/score" and metric_named("val/loss", [path], 5) == "val/loss"
    with pytest.raises(UserError, match="may be any of train/loss, val/loss; name it with --halving"):
        metric_named("loss", [path], 5)
    with pytest.raises(UserError, match="is none of train/loss"):
        metric_named("reward", [path], 5)


def test_the_best_share_goes_on() -> None:
    values = {"a": [1.0, 3.0], "b": [5.0, 5.0], "c": [math.nan, 9.0], "d": [4.0, 2.5], "e": [0.0, 0.0]}
    rung = decide(7, "m", values, 0.5, "higher")
    assert rung.kept == ["a", "b", "d"] and rung.dropped == ["c", "e"] and rung.scores["d"] == 3.25
    assert decide(7, "m", values, 0.4, "lower").kept == ["a", "e"]
    assert decide(7, "m", values, 0.01, "higher").kept == ["b", "d"]  # two at least
