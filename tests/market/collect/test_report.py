"""What is said of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from marlab.market.collect.report import decisions_by_type, describe, draw, results_of, summary_of
from tests.market.sample_tools import tiny_world


def rows() -> list[dict[str, Any]]:
    """The line of the tiny world, and that of another one with twice its scores."""
    row = summary_of(tiny_world().meta)
    twice = [{**agent, "score": 2 * agent["score"]} for agent in row["agents"]]
    return [row, {**row, "world_id": "other", "agents": twice, "bytes": 2000, "cpu_s": 1.5}]


def test_numbers_of_the_record_add_up() -> None:
    results = results_of(rows(), planned=3, failed={"third": "it hung"})
    assert (results["worlds"], results["worlds_planned"], results["worlds_failed"]) == (2, 3, 1)
    assert results["days"] == 2 * tiny_world().meta["days_played"]
    assert results["decisions"] == 2 * len(tiny_world().tables["decisions"]["seq"])
    assert results["decisions"] == sum(decisions_by_type(rows()).values()) and results["cpu_s"] == 1.5


def test_the_table_tells_tracked_agents_and_fillers_apart() -> None:
    text = describe(rows(), planned=3, failed={"third": "it hung"})
    assert text.startswith("2 of 3 worlds") and "PenguinAgent" in text and "(filler)" in text
    assert describe([], planned=3, failed={"third": "it hung"}) == "0 of 3 worlds, 1 failed"


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    draw(rows(), tmp_path / "collection.png")
    assert (tmp_path / "collection.png").read_bytes().startswith(b"\x89PNG")
