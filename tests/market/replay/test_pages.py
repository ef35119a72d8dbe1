"""The pages of a tournament: panels that say what its tables say, and a page for each world with logs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from marlab.lab.config import to_dict
from marlab.lab.runs.records import RunInfo
from marlab.market.arena.report import write_seats
from marlab.market.replay import pages
from tests.market.result_cases import some_result


def run_at(folder: Path) -> RunInfo:
    config = to_dict(some_result(configs=4).config)
    return cast(RunInfo, SimpleNamespace(path=folder, config=lambda: config))


def test_a_tournament_in_panels(tmp_path: Path) -> None:
    result = some_result(configs=4)
    assert pages.cup(run_at(tmp_path)).panels == []
    write_seats(result.seats, tmp_path / "seats.parquet")
    made = pages.cup(run_at(tmp_path))
    panels = {panel.title: panel for panel in made.panels}
    differences = panels["market.cup.differences"]
    assert differences.data["rows"][0]["name"] == "Strong(mode=a)" and differences.caption == "market.cup.student"
    assert differences.data["reference"] == {"name": "RandomStdAgent", "value": 0.0}
    header, rows = (panels["market.cup.scores"].data[name] for name in ("columns", "rows"))
    assert header == ["market.cup.agent", "market.cup.score", "market.cup.first", "market.cup.last"]
    assert rows[0][1]["value"] == pytest.approx(1.315) and rows[0][1]["low"] < 1.315
    possible = panels["market.cup.possible"].data["rows"][0]
    assert possible[:3] == ["Strong(mode=a)", "market.cup.first", pytest.approx(0.815)]
    assert made.results and "market.cup.pairs" not in panels  # two agents are one difference


def test_a_collection_shows_its_first_worlds(logged: Path, tmp_path: Path) -> None:
    (tmp_path / "worlds").mkdir()
    for number in range(pages.FEW_WORLDS + 1):
        shutil.copy(logged / "logs" / "c000-t00-w.parquet", tmp_path / "worlds" / f"w{number}.parquet")
    made = pages.collected(run_at(tmp_path))
    assert [page.name for page in made.pages] == ["world-w0", "world-w1", "world-w2"]
    assert not any(factory["explained"] for factory in made.pages[0].panels[0].data["factories"])


def test_worlds_with_logs_have_pages_and_not_too_many(logged: Path, tmp_path: Path) -> None:
    (page,) = pages.cup(run_at(logged)).pages
    assert page.name == "world-c000-t00-w" and "neu" in page.title
    (panel,) = page.panels
    assert list(panel.parts) == ["contracts", "days-0", "days-10"] and panel.place == "replay"
    assert panel.parts["days-10"]()["negotiations"] and len(json.dumps(panel.data, allow_nan=False)) < 30_000
    (tmp_path / "logs").mkdir()
    all_worlds = pages.MOST_WORLDS + 3
    for number in range(all_worlds):
        name = f"c00{number % 3}-t{number:02d}-w.parquet"
        shutil.copy(logged / "logs" / "c000-t00-w.parquet", tmp_path / "logs" / name)
    made = pages.cup(run_at(tmp_path))
    assert len(made.pages) == pages.MOST_WORLDS
    told = f"{pages.MOST_WORLDS} / {all_worlds}"
    assert made.panels[-1].data == [{"name": "market.cup.more", "value": told}]
