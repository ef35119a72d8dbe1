"""How a tournament is told: tables for the terminal and as Markdown, numbers for the run record, Parquet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as RichTable

from marlab.lab.report import markdown
from marlab.lab.runs.files import plain_json, replacing
from marlab.lab.runs.judged import Judged
from marlab.lab.stats import written
from marlab.market.arena import stats
from marlab.market.arena.plan import PlayConfig, label
from marlab.market.arena.stats import Comparison, Seat, mean_of, score_interval
from marlab.market.arena.world import money_parts
from marlab.market.simulator.seating import POSITIONS
from marlab.market.simulator.settlement import MONEY

BOUNDS = ("no_trade", "captured", "mean_price", "issue")
_FEW = 8
"""Configs below which a percentile bootstrap is too narrow to be trusted alone."""


@dataclass(frozen=True)
class Result:
    """A tournament so far: only complete configs count."""

    config: PlayConfig
    agents: list[str]  # rows of the tables
    seats: list[Seat]
    worlds: int
    planned: int
    left_out: dict[str, str] = field(default_factory=dict)  # agent -> why
    failed: dict[str, str] = field(default_factory=dict)  # world -> why
    notes: list[str] = field(default_factory=list)
    settlement_error: float = 0.0

    @property
    def configs(self) -> list[int]:
        """The complete ones."""
        return sorted({seat["config"] for seat in self.seats})

    def comparisons(self) -> list[Comparison]:
        """Everybody minus the baseline."""
        config = self.config
        return stats.compare(self.seats, self.agents, config.against, config.alpha, config.design == "seats")


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def tables(result: Result) -> list[Table]:
    """All tables, the most important one first."""
    return [
        _scores(result), _differences(result), _parts(result), _possible(result), _downstream(result), _conduct(result)
    ]  # fmt: skip


def ranked(result: Result) -> list[str]:
    """The agents that have played, best first."""
    own = [name for name in result.agents if any(seat["agent"] == name for seat in result.seats)]
    return sorted(own, key=lambda name: -score_interval(result.seats, name)[0])


def _own(result: Result, name: str) -> list[Seat]:
    return [seat for seat in result.seats if seat["agent"] == name]


def _by_place(result: Result) -> Iterator[tuple[str, str, list[Seat]]]:
    """Agent, level and the seats there, of all levels at which the agent sat."""
    for name in ranked(result):
        for place in POSITIONS:
            seats = [seat for seat in _own(result, name) if seat["position"] == place]
            if seats:
                yield name, place, seats


def _scores(result: Result) -> Table:
    best = stats.best_shares(result.seats, ranked(result))
    rows = []
    for name in ranked(result):
        mean, limits = score_interval(result.seats, name)
        seats = _own(result, name)
        places = []
        for place in POSITIONS:
            here = stats.means_by_config([s for s in seats if s["position"] == place], name)
            places.append(_number(float(np.mean(list(here.values())))) if here else "")
        rows.append([label(name), str(len(seats)), _number(mean), _range(limits), *places, _percent(best[name])])
    header = ("agent", "seats", "score", "95 % over configs", *POSITIONS, "best of config")
    n = len(result.configs)
    note = f"Final over opening balance, averaged per config, {n} config{'' if n == 1 else 's'}."
    if n == 1:
        note += " One config has no interval: play more."
    return Table("Scores", header, rows, note)


def _differences(result: Result) -> Table:
    comparisons = sorted(result.comparisons(), key=lambda c: -c.mean)
    paired, sequential = result.config.design == "seats", result.config.until_significant
    header = ["agent", "difference", "bootstrap 95 %", "Student 95 %", *POSITIONS, "money", "configs won"]
    header += ["seats won"] if paired else []
    header += ["any-time interval", "decided"] if sequential else []
    rows = []
    for c in comparisons:
        row = [label(c.agent), signed(c.mean), interval(c.bootstrap), interval(c.student)]
        row += [_with_half(c.by_position.get(place)) for place in POSITIONS]
        row += [signed(c.money, 0), _percent(c.wins)]
        row += [f"{_percent(c.pair_wins)} of {c.pairs}"] if paired else []
        row += [interval(c.sequence), "yes" if c.decided else "no"] if sequential else []
        rows.append(row)
    how = "the same seats, neighbours and random numbers" if paired else "the same worlds, all seats of each config"
    note = f"Agent minus {label(result.config.against)} in {how}, tested over configs; money: gain in profit per world."
    if len(result.configs) < _FEW:
        note += f" With fewer than {_FEW} configs the bootstrap is too narrow: read Student's interval."
    if sequential:
        note += (
            f" The any-time interval holds at every look with probability {1 - result.config.alpha:g} over all rows"
            " together (mixture confidence sequence for normal differences) and decides when play stops."
        )
    return Table(f"Against {label(result.config.against)}", header, rows, note)


def _parts(result: Result) -> Table:
    rows = []
    for name, place, seats in _by_place(result):
        parts = money_parts(seats)
        units = [_number(mean_of(seats, key), 1) for key in ("produced", "bought", "stock")]
        cells = [_number(parts[key]) for key in MONEY]
        rows.append([label(name), place, _number(mean_of(seats, "score")), *cells, *units])
    header = ("agent", "level", "score", *MONEY, "sold", "bought", "last stock")
    note = (
        "Means over seats. Score = 1 + revenue - supply bill - purchases - production - storage - penalty, as shares "
        "of the opening balance, recomputed from signed contracts (largest error of a balance: "
        f"{result.settlement_error:.1e})."
    )
    return Table("Where the score comes from", header, rows, note)


def _possible(result: Result) -> Table:
    rows = []
    for name, place, seats in _by_place(result):
        scores = [_number(mean_of(seats, key)) for key in ("score", *BOUNDS)]
        shares = [_percent(stats.closed(seats, bound)) for bound in BOUNDS[1:]]
        rows.append([label(name), place, *scores, *shares])
    header = ("agent", "level", "score", "no trade", "captured", "mean price", "issue")
    note = "Means over seats. The last three columns: share of (bound - no trade) that was reached, against each bound."
    closing = ("of captured", "of mean price", "of issue")
    return Table("What was possible", (*header, *closing), rows, note)


def _downstream(result: Result) -> Table:
    cells = stats.grouped(result.seats, "agent", "position", "downstream")
    kinds = sorted({(p, d) for _, p, d in cells if p != "last"}, key=lambda kind: (POSITIONS.index(kind[0]), kind[1]))
    rows = []
    for name in ranked(result):
        row = [label(name)]
        for kind in kinds:
            seats = cells.get((name, *kind), [])
            row.append(f"{_number(mean_of(seats, 'score'))} ({len(seats)})" if seats else "")
        rows.append(row)
    header = ("agent", *(f"{place}: {letters}" for place, letters in kinds))
    note = "Score (seats) by the built-in agents directly downstream: G Greedy, R Random, S SyncRandom, - none."
    return Table("What sits downstream", header, rows, note)


def _conduct(result: Result) -> Table:
    rows = []
    for name in ranked(result):
        seats = _own(result, name)
        days = sum(seat["days"] for seat in seats)
        decided = sum(seat.get("own_decisions", 0) for seat in seats)
        unsafe = sum(seat.get("own_unsafe", 0) for seat in seats)
        # the agent's own count includes what it caught itself; the simulator's what came through
        raised = sum(seat["exceptions"] + seat.get("own_exceptions", 0) for seat in seats)
        slowest = max((seat["ms_95"] for seat in seats if "ms_95" in seat), default=math.nan)
        rows.append([
            label(name), _number(sum(seat["shortfall"] for seat in seats) / days, 2),
            _percent(mean_of(seats, "bankrupt")), str(raised), _percent(unsafe / decided, 2) if decided else "",
            _number(mean_of(seats, "ms_50"), 1), _number(slowest, 1),
            _number(50 * sum(seat["cpu_s"] for seat in seats) / days, 2),
        ])  # fmt: skip
    header = ("agent", "short/day", "bankrupt", "exceptions", "unsafe", "ms", "ms 95 %", "CPU s/50 days")
    note = (
        "Unsafe actions and milliseconds per joint decision as the agents report them (median of a world, and the "
        "worst world's 95th percentile); CPU of the agent's own callbacks."
    )
    return Table("Conduct", header, rows, note)


def preface(result: Result) -> list[str]:
    """Sentences that belong above the tables."""
    config, n = result.config, len(result.configs)
    lines = [
        f"Design {config.design}: {result.worlds} of {result.planned} worlds, {n} complete "
        f"config{'' if n == 1 else 's'} of {config.configs}, first config {config.first_config}, seed {config.seed}."
    ]
    lines += [f"{label(name)} was left out: {why}" for name, why in result.left_out.items()]
    if result.failed:
        why = next(iter(result.failed.values()))
        count = f"{len(result.failed)} world{'' if len(result.failed) == 1 else 's'}"
        lines.append(f"{count} failed, so that their configs do not count. The first one: {why}")
    return [*lines, *result.notes]


def show(result: Result, console: Console, details: bool = True) -> None:
    """Print the scores; with `details` all tables. The verdict of the run follows."""
    for line in preface(result):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for table in _filled(result)[: None if details else 1]:
        print_table(table, console)
    if not details and result.seats:
        console.print("More tables: --details, or tables.md in the run.", markup=False, highlight=False)


def _filled(result: Result) -> list[Table]:
    """The tables that have rows; an empty box tells nobody anything."""
    return [table for table in tables(result) if table.rows] if result.seats else []


def print_table(table: Table, console: Console) -> None:
    """One table for a terminal."""
    drawn = RichTable(title=table.title, caption=table.note or None, title_justify="left", caption_justify="left")
    for place, name in enumerate(table.header):
        drawn.add_column(name, justify="left" if place == 0 else "right", no_wrap=place == 0)
    for row in table.rows:
        drawn.add_row(*row)
    console.print(drawn)


def as_markdown(result: Result) -> str:
    """The same as a page."""
    parts = ["# Tournament", markdown.bullets(map(markdown.plain, preface(result)))]
    parts += [table_as_markdown(table) for table in _filled(result)]
    return "\n\n".join(parts) + "\n"


def table_as_markdown(table: Table) -> str:
    """One table with its title and note."""
    rows = [[markdown.plain(cell) for cell in row] for row in table.rows]
    parts = [f"## {table.title}", markdown.table(table.header, rows), markdown.plain(table.note)]
    return "\n\n".join(part for part in parts if part)


def numbers(result: Result) -> dict[str, Any]:
    """Results for run.json: scores and differences with their intervals."""
    numbers: dict[str, Any] = {
        "worlds": result.worlds,
        "configs": len(result.configs),
        "worlds_failed": len(result.failed),
        "left_out": [label(name) for name in result.left_out],
        "settlement_error": result.settlement_error,
    }
    for name in ranked(result):
        numbers[f"score {label(name)}"] = stored(*score_interval(result.seats, name))
    for c in result.comparisons() if result.seats else []:
        numbers[f"{label(c.agent)} - {label(c.against)}"] = stored(c.mean, c.bootstrap)
    return numbers


def judged_by(result: Result) -> Judged:
    """The first agent that is not the baseline is the one that was asked about."""
    asked = [name for name in result.agents if name != result.config.against] or result.agents
    return Judged(tuple(f"score {label(name)}" for name in asked[:1]))


def cases(result: Result) -> dict[str, dict[str, float]]:
    """Every agent's score, market by market: another tournament in the same markets can be paired with it."""
    seed = result.config.seed
    return {
        f"score {label(name)}": {
            f"config {number}, seed {seed}": mean for number, mean in stats.means_by_config(result.seats, name).items()
        }
        for name in ranked(result)
    }


def as_json(result: Result) -> dict[str, Any]:
    """Everything that the tables show, as plain values."""
    comparisons = [asdict(c) for c in result.comparisons()] if result.seats else []
    return {
        **numbers(result),
        "complete_configs": result.configs,
        "left_out": result.left_out,
        "failed": result.failed,
        "notes": result.notes,
        "comparisons": [plain_json(c) for c in comparisons],
    }


def write_seats(seats: Sequence[Seat], path: Path) -> None:
    """One row per tested factory and world."""
    names = list(dict.fromkeys(key for seat in seats for key in seat))
    with replacing(path) as temporary:
        pq.write_table(pa.table({name: [seat.get(name) for seat in seats] for name in names}), temporary)


def stored(mean: float, interval: tuple[float, float] | None) -> dict[str, Any]:
    """A mean with its interval as `results` of a run holds them."""
    low, high = interval or (None, None)
    return {"value": round(mean, 5), "low": low, "high": high}


def _number(value: float, digits: int = 3) -> str:
    return written(value, digits) if np.isfinite(value) else ""


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, also a plus."""
    return ("+" if value > 0 else "") + written(value, digits)


def _percent(value: float | None, digits: int = 0) -> str:
    return "" if value is None or not np.isfinite(value) else f"{written(100 * value, digits)} %"


def interval(pair: tuple[float, float] | None) -> str:
    """[low, high] with signs; nothing where there is none."""
    if pair is None:
        return ""
    return f"[{signed(pair[0])}, {signed(pair[1])}]" if np.isfinite(pair[0]) else "unlimited"


def _range(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"[{_number(pair[0])}, {_number(pair[1])}]"


def _with_half(value: tuple[float, float | None, int] | None) -> str:
    if value is None:
        return ""
    return signed(value[0]) + (f" ±{value[1]:.3f}" if value[1] is not None else "")
