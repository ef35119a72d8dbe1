"""What the notebook shows of a tournament (who is ahead, by level and pair, what was possible) and of single worlds."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

from marlab.lab.config import from_dict
from marlab.lab.notebook.panels import Cell, Contribution, Page, Panel, Table
from marlab.lab.runs.records import RunInfo
from marlab.market.arena.plan import PlayConfig, label
from marlab.market.arena.report import BOUNDS
from marlab.market.replay import tournament
from marlab.market.replay.world import WorldReplay
from marlab.market.simulator.seating import POSITIONS

MOST_WORLDS = 12
"""Replay pages of one tournament; a world of 200 days takes one to three megabytes."""
FEW_WORLDS = 3
"""Replay pages of a collection, whose worlds are samples and not matches."""


def cup(info: RunInfo) -> Contribution:
    """A tournament."""
    seats = tournament.read_seats(info.path)
    config = from_dict(PlayConfig, info.config(), str(info.path / "config.json"))
    files = _logged(info.path)
    pages = [_page(file) for file in files[:MOST_WORLDS]]
    panels = _panels(seats, config) if seats else []
    if len(files) > len(pages):
        told = f"{len(pages)} / {len(files)}"
        panels.append(Panel("facts", "market.cup.more", [{"name": "market.cup.more", "value": told}], place="details"))
    return Contribution(panels, pages, results=bool(seats))


def collected(info: RunInfo) -> Contribution:
    """A collection: its first worlds."""
    files = sorted((info.path / "worlds").glob("*.parquet"))
    return Contribution(pages=[_page(file) for file in files[:FEW_WORLDS]])


def _panels(seats: list[dict[str, Any]], config: PlayConfig) -> list[Panel]:
    scores, gaps = tournament.scores(seats), tournament.differences(seats, config)
    panels = []
    if gaps:
        few = min(len(row["marks"]) for row in gaps) < tournament.FEW
        data = {
            "rows": gaps,
            "unit": "market.cup.unit",
            "better": "higher",
            "reference": {"name": label(config.against), "value": 0.0},
        }
        text = "market.cup.student" if few else "market.cup.bootstrap"
        panels.append(Panel("intervals", "market.cup.differences", data, text))
    panels.append(Panel("table", "market.cup.scores", _score_table(scores).data(), "market.cup.scores_text"))
    if len(scores) > 2:
        panels.append(Panel("heat", "market.cup.pairs", tournament.pairwise(seats), "market.cup.pairs_text"))
    configs = {
        "rows": scores,
        "unit": "market.cup.score_unit",
        "better": "higher",
        "reference": {"name": "market.cup.opening", "value": 1.0},
    }
    panels.append(Panel("intervals", "market.cup.configs", configs, "market.cup.configs_text"))
    possible = _possible_table(tournament.possible(seats))
    panels.append(Panel("table", "market.cup.possible", possible.data(), "market.cup.possible_text"))
    return panels


def _score_table(rows: list[dict[str, Any]]) -> Table:
    places = [place for place in POSITIONS if any(place in row["levels"] for row in rows)]
    cells: list[list[Cell]] = [
        [row["name"], _cell(row), *(_cell(row["levels"][p]) if p in row["levels"] else None for p in places)]
        for row in rows
    ]
    return Table(["market.cup.agent", "market.cup.score", *(f"market.cup.{place}" for place in places)], cells)


def _possible_table(rows: list[dict[str, Any]]) -> Table:
    shares = [f"of_{bound}" for bound in BOUNDS[1:]]
    columns = ["agent", "level", shares[0], "score", *BOUNDS, *shares[1:], "seats"]
    cells: list[list[Cell]] = []
    for row in rows:
        named = {"agent": row["name"], "level": f"market.cup.{row['level']}"}
        cells.append([named[column] if column in named else _number(row[column]) for column in columns])
    return Table([f"market.cup.{column}" for column in columns], cells)


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)


def _cell(told: dict[str, Any]) -> Cell:
    low, high = _number(told["low"]), _number(told["high"])
    return {"value": round(told["value"], 4), "low": low, "high": high}


def _logged(folder: Path) -> list[Path]:
    """World logs, the first world of every market before the second ones."""
    files = sorted((folder / "logs").glob("*.parquet"))
    return sorted(files, key=lambda file: (file.stem.split("-")[1:2], file.stem))


def _page(file: Path) -> Page:
    replay = WorldReplay(file)
    parts: dict[str, Any] = {name: partial(replay.part, first) for name, first in replay.part_names().items()}
    panel = Panel(
        "market.world",
        "market.world.title",
        replay.summary(),
        "market.world.lead",
        place="replay",
        parts={"contracts": replay.contracts, **parts},
    )
    who = ", ".join(dict.fromkeys(factory["type"] for factory in panel.data["factories"]))
    return Page(f"world-{file.stem.lower()}", f"{'-'.join(file.stem.split('-')[:2])}: {who}", [panel])
