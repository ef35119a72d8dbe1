"""A tournament's tables and intervals as plain values for its page, from the run folder alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_parquet
from marlab.lab.runs.files import trusting
from marlab.lab.stats import mean_interval, student
from marlab.market.arena.plan import PlayConfig, label
from marlab.market.arena.report import BOUNDS
from marlab.market.arena.stats import Comparison, Seat, closed, compare, mean_of, means_by_config
from marlab.market.simulator.seating import POSITIONS

FEW = 8
"""Configs below which Student's interval is shown: a bootstrap over fewer is too narrow."""


def read_seats(folder: Path) -> list[Seat]:
    """One record per tested factory and world; none if no market is complete yet."""
    path = folder / "seats.parquet"
    if not path.is_file():
        return []
    with trusting(f"{path} is damaged"):
        seats = read_parquet(path).to_pylist()
    needed = {"agent", "config", "position", "score", *BOUNDS}
    if seats and needed - set(seats[0]):
        raise UserError(f"{path} lacks the column {min(needed - set(seats[0]))}.")
    for seat in seats:
        if not isinstance(seat["score"], int | float) or any(
            seat[key] is None for key in ("agent", "config", "position")
        ):
            raise UserError(f"{path} is damaged: a seat has no score, or does not say whose it is.")
    return seats


def agents_of(seats: Sequence[Seat]) -> list[str]:
    """Everybody who was tested, best first."""
    names = dict.fromkeys(seat["agent"] for seat in seats)
    return sorted(names, key=lambda name: -float(np.mean(list(means_by_config(seats, name).values()))))


def scores(seats: Sequence[Seat]) -> list[dict[str, Any]]:
    """A row per agent: mean over configs, interval, every config's mean, and the mean at each level."""
    rows = []
    for name in agents_of(seats):
        values = list(means_by_config(seats, name).values())
        mean, low, high = (float(v) for v in mean_interval(values))
        levels = {}
        for place in POSITIONS:
            here = list(means_by_config([s for s in seats if s["position"] == place], name).values())
            if here:
                levels[place] = _interval(here)
        rows.append({"name": label(name), **_told(mean, low, high, len(values)), "marks": values, "levels": levels})
    return rows


def differences(seats: Sequence[Seat], config: PlayConfig) -> list[dict[str, Any]]:
    """A row per agent minus the baseline, best first."""
    names = agents_of(seats)
    if config.against not in names:
        return []
    made = compare(seats, names, config.against, config.alpha, config.design == "seats")
    return [_difference(c) for c in sorted(made, key=lambda c: -c.mean)]


def _difference(c: Comparison) -> dict[str, Any]:
    interval = c.student if len(c.differences) < FEW else c.bootstrap
    low, high = interval or (math.nan, math.nan)
    return {
        "name": label(c.agent), "value": c.mean, "low": low, "high": high, "marks": list(c.differences),
        "money": c.money, "wins": c.wins, "pair_wins": c.pair_wins, "pairs": c.pairs,
    }  # fmt: skip


def pairwise(seats: Sequence[Seat]) -> dict[str, Any]:
    """Everybody minus everybody: means [row][column] of the differences over shared configs, and what is certain."""
    names = agents_of(seats)
    table = {name: means_by_config(seats, name) for name in names}
    mean: list[list[float | None]] = []
    text: list[list[str]] = []
    for row in names:
        means: list[float | None] = []
        words = []
        for column in names:
            gaps = [table[row][c] - table[column][c] for c in table[row] if c in table[column]]
            if row == column or not gaps:
                means.append(None)
                words.append("")
                continue
            interval = student(gaps)
            certain = interval is not None and not interval[0] <= 0 <= interval[1]
            means.append(float(np.mean(gaps)))
            words.append(f"{float(np.mean(gaps)):+.2f}{'*' if certain else ''}".replace("-", "−"))
        mean.append(means)
        text.append(words)
    labels = [label(name) for name in names]
    return {"x": labels, "y": labels, "z": mean, "text": text, "middle": 0}


def possible(seats: Sequence[Seat]) -> list[dict[str, Any]]:
    """What was made of what was possible, by agent and level."""
    rows = []
    for name in agents_of(seats):
        for place in POSITIONS:
            here = [seat for seat in seats if seat["agent"] == name and seat["position"] == place]
            if here:
                told = {key: mean_of(here, key) for key in ("score", *BOUNDS)}
                shares = {f"of_{bound}": closed(here, bound) for bound in BOUNDS[1:]}
                rows.append({"name": label(name), "level": place, "seats": len(here), **told, **shares})
    return rows


def _interval(values: Sequence[float]) -> dict[str, float]:
    mean, low, high = (float(v) for v in mean_interval(values))
    return _told(mean, low, high, len(values))


def _told(mean: float, low: float, high: float, count: int) -> dict[str, float]:
    """A mean, with its interval where there is more than one value."""
    known = count > 1
    return {"value": mean, "low": low if known else math.nan, "high": high if known else math.nan}
