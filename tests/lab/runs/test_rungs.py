"""Trainings that stop at a rung: where, why, and that going on changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.rungs import only_until, reached, steps_done, stopped_after
from marlab.lab.runs.testing import assert_same
from marlab.lab.runs.trainer import drive
from tests.lab.tiny import TinyConfig, TinyTrainer, train

CONFIG = TinyConfig(total=6)


def test_rungs_on_the_way_change_nothing(tmp_path: Path) -> None:
    train(CONFIG, tmp_path / "smooth", resume=False)
    for step in (2, 3, 2):  # the last is behind: nothing is to be done
        with only_until(tmp_path / "rungs", step):
            train(CONFIG, tmp_path / "rungs", resume=step != 2 or (tmp_path / "rungs").exists())
        info = read_run(tmp_path / "rungs")
        done = max(step, len(read_metrics(tmp_path / "rungs" / "metrics.jsonl")))
        assert (info.status, steps_done(info.reason)) == ("interrupted", done)
    assert train(CONFIG, tmp_path / "rungs", resume=True).status == "finished"
    a, b = (CheckpointStore(tmp_path / name / "checkpoints", "tiny").load_latest()[0] for name in ("smooth", "rungs"))
    assert a is not None and b is not None
    assert_same(a.state, b.state)
    assert [row["step"] for row in read_metrics(tmp_path / "rungs" / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6]


def test_nothing_is_made_at_a_rung(tmp_path: Path) -> None:
    """Also not by a command that stays when its time is up, to write its figures: whoever goes on makes them."""
    with only_until(tmp_path, 2), Run.open("tiny", CONFIG, RunOptions(output_dir=tmp_path)) as run:
        store = CheckpointStore(run.checkpoints, "tiny")
        drive(TinyTrainer(CONFIG), run, store, save_every=5, unit="iterations", quiet=True, stay=True)
        raise AssertionError("figures would be drawn here")
    assert steps_done(read_run(tmp_path).reason) == 2 and store.steps() == [2]


def test_a_rung_beyond_the_end_is_the_end(tmp_path: Path) -> None:
    for step in (6, 9):
        with only_until(tmp_path / str(step), step):
            assert train(CONFIG, tmp_path / str(step), resume=False).status == "finished"


def test_only_the_run_that_is_meant_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with only_until(Path("a"), 3):
        assert (
            reached(tmp_path / "a", 3) and not reached(tmp_path / "a", 2) and not reached(tmp_path / "a/phases/p1", 9)
        )
    assert not reached(tmp_path / "a", 9)
    with only_until(Path("a"), None):
        assert not reached(tmp_path / "a", 9)


def test_reasons_are_read_back() -> None:
    assert steps_done(stopped_after(12)) == 12
    assert steps_done(None) is None and steps_done("time limit") is None
