"""Tables and numbers of a tournament."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from marlab.market.arena.report import (
    as_json,
    as_markdown,
    cases,
    judged_by,
    numbers,
    preface,
    show,
    tables,
    write_seats,
)
from tests.market.result_cases import some_result


def test_the_best_agent_comes_first_under_its_short_name() -> None:
    scores, differences, *_ = tables(some_result())
    assert [row[0] for row in scores.rows] == ["Strong(mode=a)", "RandomStdAgent"]
    assert scores.rows[0][1:3] == ["6", "1.310"] and "3 configs" in scores.note
    assert [row[0] for row in differences.rows] == ["Strong(mode=a)"]


def test_one_config_says_that_it_has_no_interval() -> None:
    assert "One config has no interval" in tables(some_result(configs=1))[0].note


def test_who_was_left_out_is_said_first() -> None:
    result = some_result(left_out={"module:Broken": "init raised ValueError"}, failed={"w9": "it hung"})
    assert any("Broken" in line and "init raised ValueError" in line for line in preface(result))
    assert "init raised ValueError" in as_markdown(result)


def test_numbers_and_json_agree_with_the_tables() -> None:
    result = some_result()
    assert result.comparisons()[0].mean == pytest.approx(0.31)
    stored = json.loads(json.dumps(as_json(result), allow_nan=False))
    assert stored["comparisons"][0]["mean"] == pytest.approx(0.31)
    assert any("Strong" in name for name in numbers(result))


def test_a_tournament_is_judged_by_its_first_entrant_market_by_market() -> None:
    result = some_result()
    (name,) = judged_by(result).results
    assert name == "score Strong(mode=a)" and name in numbers(result)
    found = cases(result)[name]
    assert len(found) == 3 and all(case.startswith("config ") for case in found)
    assert sum(found.values()) / 3 == pytest.approx(numbers(result)[name]["value"], abs=1e-5)


def test_seats_are_a_table_of_all_measurements(tmp_path: Path) -> None:
    result = some_result()
    write_seats(result.seats, tmp_path / "seats.parquet")
    rows = pq.read_table(tmp_path / "seats.parquet").to_pylist()
    assert [row["score"] for row in rows] == [seat["score"] for seat in result.seats]


def test_a_table_without_rows_is_not_shown() -> None:
    alone = replace(some_result(), agents=["RandomStdAgent"])  # nobody to compare with the baseline
    assert not tables(alone)[1].rows and tables(alone)[1].title not in as_markdown(alone)
    assert tables(alone)[0].title in as_markdown(alone)


def test_one_table_is_printed_and_the_rest_with_details() -> None:
    result, out = some_result(), io.StringIO()
    show(result, Console(file=out, width=200), details=False)
    assert "Scores" in out.getvalue() and "Conduct" not in out.getvalue()
    show(result, Console(file=out, width=200), details=True)
    assert "Conduct" in out.getvalue()
