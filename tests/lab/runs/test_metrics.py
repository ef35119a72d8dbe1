"""Metrics: crash-proof lines, resumed steps, and tails that do not read the whole file."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import marlab.lab.runs.metrics as metrics
from marlab.lab.errors import UserError
from marlab.lab.runs.metrics import MetricsWriter, column, read_metrics, tail_metrics


def write(path: Path, steps: range, resume: int | None = None) -> None:
    with MetricsWriter(path, resume_step=resume) as writer:
        for step in steps:
            writer.log(step, {"loss/policy": step / 2, "note": "ä"})


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(path, range(1, 4))
    rows = read_metrics(path)
    assert [r["step"] for r in rows] == [1, 2, 3]
    assert column(rows, "loss/policy") == ([1, 2, 3], [0.5, 1.0, 1.5])
    assert column(rows, "note") == ([], [])
    assert rows[0]["note"] == "ä"


def test_values_that_are_not_finite_stay_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    with MetricsWriter(path) as writer:
        writer.log(1, {"a": math.nan, "b": -math.inf, "c": None, "d": [1, math.inf], "e": {"x": 2}})
    assert "NaN" not in path.read_text() and "Infinity" not in path.read_text()
    row = read_metrics(path)[0]
    assert math.isnan(row["a"]) and row["b"] == -math.inf and row["c"] is None and row["e"] == {"x": 2}


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_crash_in_the_middle_of_a_line_loses_that_line_only(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "m.jsonl"
    write(path, range(1, 6))
    os.truncate(path, path.stat().st_size - cut)
    write(path, range(5, 8), resume=4)
    assert [r["step"] for r in read_metrics(path)] == [1, 2, 3, 4, 5, 6, 7]
    assert [r["step"] for r in tail_metrics(path, 4)] == [4, 5, 6, 7]


@given(
    lives=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=6),
    count=st.integers(1, 20),
    block=st.integers(1, 300),
)
def test_tail_equals_the_end_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, lives: list[tuple[int, int]], count: int, block: int
) -> None:
    path = tmp_path_factory.mktemp("m") / "m.jsonl"
    old, metrics.BLOCK = metrics.BLOCK, block
    try:
        reached = 0
        for i, (back, n) in enumerate(lives):
            start = max(0, reached - back)
            write(path, range(start + 1, start + n + 1), resume=None if i == 0 else start)
            reached = start + n
        assert tail_metrics(path, count) == read_metrics(path)[-count:]
    finally:
        metrics.BLOCK = old


def test_tail_reads_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.jsonl"
    write(path, range(20_000))
    read: list[int] = []
    seen = metrics._lines_backwards

    def counted(p: Path):  # type: ignore[no-untyped-def]
        for line in seen(p):
            read.append(len(line))
            yield line

    monkeypatch.setattr(metrics, "_lines_backwards", counted)
    assert len(tail_metrics(path, 3)) == 3
    assert sum(read) < 1000 < path.stat().st_size


def test_tensorboard_has_the_same_names(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with MetricsWriter(tmp_path / "m.jsonl", tmp_path / "tb") as writer:
        writer.log(1, {"loss/policy": 0.5, "note": "text"})
    with MetricsWriter(tmp_path / "m.jsonl", tmp_path / "tb", resume_step=1) as writer:
        writer.log(2, {"loss/policy": 0.25})
    events = EventAccumulator(str(tmp_path / "tb"))
    events.Reload()
    assert events.Tags()["scalars"] == ["loss/policy"]
    assert [(e.step, e.value) for e in events.Scalars("loss/policy")] == [(1, 0.5), (2, 0.25)]


def test_no_file_no_rows(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "none.jsonl") == [] == tail_metrics(tmp_path / "none.jsonl", 3)


def test_a_pipe_in_place_of_metrics_is_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")
    for use in (read_metrics, lambda path: tail_metrics(path, 3), MetricsWriter):
        with pytest.raises(UserError, match="Not a regular file"):
            use(tmp_path / "metrics.jsonl")
