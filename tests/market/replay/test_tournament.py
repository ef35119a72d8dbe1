"""The tournament's page says what its tables say."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.market.arena.report import write_seats
from marlab.market.arena.stats import compare, score_interval
from marlab.market.replay import tournament
from tests.market.result_cases import some_result


def test_scores_by_agent_and_level_are_means_over_configs() -> None:
    result = some_result(configs=4)
    rows = tournament.scores(result.seats)
    assert [row["name"] for row in rows] == ["Strong(mode=a)", "RandomStdAgent"]
    mean, _ = score_interval(result.seats, "module:Strong(mode=a)")
    assert rows[0]["value"] == pytest.approx(mean) and len(rows[0]["marks"]) == 4
    assert rows[0]["low"] < mean < rows[0]["high"]
    assert set(rows[0]["levels"]) == {"first", "last"} and rows[0]["levels"]["last"]["value"] == pytest.approx(mean)


def test_differences_are_those_of_the_tables_and_few_configs_get_students_interval() -> None:
    for configs in (3, 9):
        result = some_result(configs=configs)
        (row,) = tournament.differences(result.seats, result.config)
        (c,) = compare(result.seats, result.agents, result.config.against, 0.05, paired=False)
        assert row["value"] == c.mean and row["wins"] == 1.0
        assert (row["low"], row["high"]) == (c.student if configs < tournament.FEW else c.bootstrap)


def test_everybody_against_everybody_is_antisymmetric() -> None:
    table = tournament.pairwise(some_result(configs=4).seats)
    assert table["z"][0][1] == pytest.approx(-table["z"][1][0]) and table["z"][0][0] is None
    assert table["text"][0][1].endswith("*")  # 0.3 and more in every config


def test_what_was_possible_is_a_share_of_the_way() -> None:
    row = tournament.possible(some_result().seats)[0]
    assert row["of_captured"] == pytest.approx((row["score"] - 0.5) / (1.5 - 0.5))


def test_seats_come_from_the_folder(tmp_path: Path) -> None:
    assert tournament.read_seats(tmp_path) == []
    write_seats(some_result().seats, tmp_path / "seats.parquet")
    assert tournament.scores(tournament.read_seats(tmp_path)) == tournament.scores(some_result().seats)
    (tmp_path / "seats.parquet").write_text("nothing")
    with pytest.raises(UserError, match="damaged"):
        tournament.read_seats(tmp_path)
