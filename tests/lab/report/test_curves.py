"""Metrics become lines with gaps where nothing was recorded."""

from __future__ import annotations

import numpy as np

from marlab.lab.report.curves import column, last, level, seed_columns

ROWS = [{"a": 1, "seed_3/b": 2.0}, {"a": "text", "seed_5/b": None}, {"seed_5/b": 4}]


def test_a_column_has_gaps_where_no_number_was_recorded() -> None:
    np.testing.assert_array_equal(column(ROWS, "a"), [1.0, np.nan, np.nan])


def test_every_seed_has_its_line() -> None:
    np.testing.assert_array_equal(seed_columns(ROWS, (3, 5), "b"), [[2.0, np.nan, np.nan], [np.nan, np.nan, 4.0]])
    assert seed_columns([], (3, 5), "b").shape == (2, 0)


def test_the_level_of_a_training() -> None:
    line = np.array([np.nan, *[1.0] * 10, *[3.0] * 80, *[2.0] * 10])
    assert level(line) == (3.0, 2.0)
    assert np.isnan(level(np.array([np.nan]))).all()
    assert level(np.array([1.0, 2.0])) == (2.0, 2.0)  # the end is never above the highest
    assert last(np.arange(40.0).reshape(2, 20)).tolist() == [[18.0, 19.0], [38.0, 39.0]]
