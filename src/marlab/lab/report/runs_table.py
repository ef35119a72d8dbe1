"""Lists of runs and two runs side by side: plain data first, then what a terminal shows."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from marlab.lab.errors import UserError
from marlab.lab.report.facts import config_of, duration, last_metrics, parameter, results_of, when
from marlab.lab.report.note import result_rows
from marlab.lab.runs.records import RunInfo
from marlab.lab.stats import Measured, show
from marlab.lab.text import clean

SORTS = ("created", "ended", "name", "status", "duration")
_STYLES = {
    "finished": "green", "running": "cyan", "interrupted": "yellow", "failed": "red", "planned": "blue",
    "abandoned": "dim",
}  # fmt: skip


@dataclass(frozen=True)
class RunFilter:
    """Which runs to show; None lets everything through."""

    world: str | None = None
    status: str | None = None
    tag: str | None = None
    group: str | None = None
    find: str | None = None  # anywhere in name, goal, group, tags, command, preset or reason, case ignored

    def accepts(self, info: RunInfo) -> bool:
        exact = (self.world, info.world), (self.status, info.status), (self.group, info.group)
        if any(wanted is not None and wanted != found for wanted, found in exact):
            return False
        if self.tag is not None and self.tag not in info.tags:
            return False
        if self.find is None:
            return True
        words = [info.id, info.goal, info.group, info.command, info.preset, info.reason, *info.tags]
        return any(self.find.casefold() in word.casefold() for word in words if word)


def value_of(info: RunInfo, name: str) -> float | None:
    """A result of the run, or else the last logged value of a metric; None if the run has neither."""
    result = results_of(info).get(name)
    if result is not None:
        return result.number
    logged = last_metrics(info).get(name)
    return None if logged is None else Measured(logged[1]).number


def sort_runs(runs: Sequence[RunInfo], by: str = "created", reverse: bool = False) -> list[RunInfo]:
    """Runs in order of one of `SORTS`, of a result or of a metric; runs without the value come last."""
    key = _sort_key(runs, by)
    ordered = sorted(runs, key=lambda info: info.id)
    have = [(value, info) for info in ordered if (value := key(info)) is not None]
    have.sort(key=lambda pair: pair[0], reverse=reverse)
    return [info for _, info in have] + [info for info in ordered if key(info) is None]


def _sort_key(runs: Sequence[RunInfo], by: str) -> Callable[[RunInfo], Any]:
    plain_keys: dict[str, Callable[[RunInfo], Any]] = {
        "created": lambda info: _moment(info.created), "ended": lambda info: _moment(info.ended),
        "name": lambda info: info.id, "status": lambda info: info.status, "duration": lambda info: info.seconds(),
    }  # fmt: skip
    if by in plain_keys:
        return plain_keys[by]
    values = {info.path: value_of(info, by) for info in runs}  # read once: sorting asks often
    if runs and all(value is None for value in values.values()):
        known = sorted({name for info in runs for name in [*info.results, *last_metrics(info)]})
        near = difflib.get_close_matches(by, [*SORTS, *known], n=3, cutoff=0.4)
        hint = f"; close: {', '.join(near)}" if near else ""
        raise UserError(f"No run has a result or metric '{by}' to sort by, expected {', '.join(SORTS)} or one{hint}.")
    return lambda info: values[info.path]


def _moment(stamp: str | None) -> float | None:
    """A stored time as a number, so that different time zones sort right."""
    try:
        moment = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@dataclass(frozen=True)
class RunRow:
    """What one line of the list says."""

    run: str
    status: str
    ended: str
    duration: str
    goal: str
    group: str
    tags: str
    results: str
    sorted_by: str | None  # value of the result or metric that the list is sorted by


def run_rows(runs: Sequence[RunInfo], by: str = "created") -> list[RunRow]:
    rows = []
    for info in runs:
        headline = "; ".join(f"{name} {result}" for name, result in list(results_of(info).items())[:2])
        value = None if by in SORTS else value_of(info, by)
        rows.append(
            RunRow(
                run=info.id,
                status=info.status,
                ended=when(info.ended) if info.ended else "",
                duration="" if info.seconds() is None else duration(info.seconds()),
                goal=info.goal or "",
                group=info.group or "",
                tags=", ".join(info.tags),
                results=headline,
                sorted_by=None if by in SORTS else ("" if value is None else show(value)),
            )
        )
    return rows


# Columns in the order in which they may claim room, and the order in which they are shown.
_CLAIMS = ("run", "status", "sorted_by", "results", "duration", "ended", "goal", "group", "tags")
_SHOWN = ("run", "status", "sorted_by", "ended", "duration", "results", "goal", "group", "tags")
_LONG = {"results": 28, "goal": 24}  # columns whose texts may be cut, and the width below which they are of no use


def runs_renderable(rows: Sequence[RunRow], by: str = "created", width: int = 200) -> Table:
    """The list as a table, a line per run; columns that are empty or find no room in `width` are left out."""
    titles = {name: by if name == "sorted_by" else name for name in _SHOWN}
    filled = [name for name in _CLAIMS if any(getattr(row, name) for row in rows)]
    longest = {name: max(len(titles[name]), *(len(getattr(row, name) or "") for row in rows)) for name in filled}
    widths = _share_out(longest, width)
    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    shown = [name for name in _SHOWN if name in widths]
    for name in shown:
        table.add_column(Text(titles[name]), no_wrap=True, overflow="ellipsis", width=widths[name])
    for row in rows:
        styles = {"status": _STYLES.get(row.status, "")}
        table.add_row(*(Text(clean(getattr(row, name) or ""), style=styles.get(name, "")) for name in shown))
    hidden = [titles[name] for name in filled if name not in widths]
    if hidden:
        table.caption = Text(f"no room for: {', '.join(hidden)}", style="dim")
    return table


def _share_out(longest: dict[str, int], width: int) -> dict[str, int]:
    """Width of each column that fits, two blanks apart; long columns are cut first and get what is left over."""
    widths: dict[str, int] = {}
    room = width
    for name, length in longest.items():
        need = min(length, _LONG.get(name, length), width)
        if need + 2 * bool(widths) <= room:
            room -= need + 2 * bool(widths)
            widths[name] = need
    for name in (name for name in _LONG if name in widths):
        more = min(room, longest[name] - widths[name])
        widths[name] += more
        room -= more
    return widths


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side, as texts."""

    a: str
    b: str
    config: list[tuple[str, str, str]]  # key, value in a, value in b
    results: list[tuple[str, str, str, str]]  # name, a, b, b - a
    hidden: int  # equal parameters that are not listed


def compare_configs(a: RunInfo, b: RunInfo, everything: bool = False) -> Comparison:
    """Parameters that differ (or all) and all results of two runs."""
    left, right = config_of(a), config_of(b)
    rows = []
    hidden = 0
    for key in [*left, *(key for key in right if key not in left)]:
        x, y = (parameter(side[key]) if key in side else "not set" for side in (left, right))
        if x != y or everything:
            rows.append((key, x, y))
        else:
            hidden += 1
    pairs = result_rows(results_of(a), results_of(b))
    told = [(name, *("not recorded" if r is None else str(r) for r in (x, y)), change) for name, x, y, change in pairs]
    return Comparison(a.id, b.id, rows, [(n, x, y, c) for n, x, y, c in told], hidden)


def comparison_renderable(found: Comparison) -> Group:
    """Two tables: parameters, then results."""
    parts: list[Table | Text] = []
    if found.config:
        parts.append(_grid(["parameter", found.a, found.b], found.config, marked=True))
    else:
        parts.append(Text("The parameters are the same."))
    if found.hidden and found.config:
        parts.append(Text(f"{found.hidden} equal parameters are not shown (--all shows them).", style="dim"))
    parts.append(Text(""))
    if found.results:
        parts.append(_grid(["result", found.a, found.b, "difference"], found.results))
    else:
        parts.append(Text("Neither run has recorded results."))
    return Group(*parts)


def _grid(titles: Sequence[str], rows: Sequence[tuple[str, ...]], marked: bool = False) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(Text(title), overflow="fold")
    for row in rows:
        differs = marked and row[1] != row[2]
        table.add_row(*(Text(clean(cell), style="yellow" if differs and i else "") for i, cell in enumerate(row)))
    return table
