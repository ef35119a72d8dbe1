from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from marlab.lab.notebook.charts import Line, clock, line_data, lines_of, ordered, rounded, spark, thinned
from marlab.lab.runs.records import read_run
from tests.lab.report.cases import make_run


def line(values: list[list[float]], name: str = "a") -> Line:
    return Line(name, np.arange(len(values[0])), np.array(values, dtype=float), [str(i) for i in range(len(values))])


def test_numbers_of_a_run_become_lines(tmp_path: Path) -> None:
    rows = [{"step": 1, "time": 5.0, "a": 1, "text": "x", "flag": True}, {"step": 3, "a": "nan", "b": 2.5}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = {each.name: each for each in lines_of(tmp_path)}
    assert list(found) == ["time", "a", "b"]
    assert found["a"].steps.tolist() == [1, 3]
    np.testing.assert_array_equal(found["a"].values, [[1.0, np.nan]])
    assert lines_of(tmp_path / "nowhere") == []


def test_seeds_of_a_run_are_one_line_with_a_band(tmp_path: Path) -> None:
    rows = [{"step": s, "a": 99.0, "seed_0/a": 1.0 * s, "seed_10/a": 3.0 * s} for s in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    [found] = lines_of(tmp_path)
    assert found.seeds == ["0", "10"]
    data = line_data(found, None)
    assert data["y"] == [2.0, 4.0]
    half = 12.7062 / 2**0.5 * 2**0.5  # Student's quantile for one degree of freedom, deviation sqrt(2), two seeds
    assert data["low"] == pytest.approx([2 - half, 4 - 2 * half], rel=1e-3)
    assert data["seeds"] == 2


def test_long_lines_are_means_of_neighbours() -> None:
    thin = thinned(line([[0, 1, 2, 3, np.nan, 5, 7]]), most=3)
    assert thin.steps.tolist() == [2, 5, 6]
    assert thin.values.tolist() == [[1.0, 4.0, 7.0]]
    assert len(thinned(line([list(range(1000))])).steps) <= 300
    short = line([[1, 2]])
    assert thinned(short) is short


def test_a_spark_runs_from_its_lowest_to_its_highest() -> None:
    assert spark([line([[1, 2, 3]])], "a") == [0, 50, 100]
    assert spark([line([[1, np.nan, 3], [3, np.nan, 5]])], "a") == [0, None, 100]
    assert spark([line([[2, 2]])], "a") == [50, 50]
    assert spark([line([[2, 2]])], "b") == []
    assert spark([line([[np.nan, np.nan]])], "a") == []


def test_the_metric_that_counts_comes_first_and_times_last(tmp_path: Path) -> None:
    judged = {"results": [], "metric": "c", "better": "higher"}
    info = read_run(make_run(tmp_path, judged_by=judged))
    lines = [line([[1]], name) for name in ("time/world", "a", "c", "b")] + [line([[np.nan]], "empty")]
    assert [each.name for each in ordered(lines, info)] == ["c", "a", "b", "time/world"]


def test_working_time_has_no_pauses() -> None:
    """Two hours of work with a night between; the first attempt died without a word."""
    attempts = [{"started": "2026-03-01T10:00:00+00:00", "ended": None}, {"started": "2026-03-02T08:00:00+00:00"}]
    start, again = (datetime.fromisoformat(a["started"]).timestamp() for a in attempts)
    moments = Line("time", np.array([1, 2, 3]), np.array([[start + 600, start + 3600, again + 1800]]), [""])
    for ended in (None, "2026-03-01T11:00:00+00:00"):
        attempts[0]["ended"] = ended
        assert clock([moments], attempts) == {"x": [1, 2, 3], "y": [600.0, 3600.0, 5400.0]}
    assert clock([moments], []) == {"x": [1, 2, 3], "y": [0.0, 3000.0, 80400.0]}
    assert clock([line([[1, 2]])], attempts) is None


def test_rounding_keeps_five_digits_and_nothing_that_is_not_a_number() -> None:
    assert rounded(np.array([1.23456789, np.nan, np.inf, 1e-9])) == [1.2346, None, None, 1e-9]
    assert rounded(np.array([-123456.7, 0.0, 0.1, 3e-320])) == [-123460.0, 0.0, 0.1, pytest.approx(3e-320)]
