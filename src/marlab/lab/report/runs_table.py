"""The list of runs: plain data first, then lines for a terminal. It reads run.json of every run and nothing else."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marlab.lab.report.facts import duration, results_of, when
from marlab.lab.report.sorting import Values
from marlab.lab.runs.records import RunInfo
from marlab.lab.stats import show
from marlab.lab.text import clean

BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
STYLES = {
    "finished": "\x1b[32m", "running": "\x1b[36m", "interrupted": "\x1b[33m", "failed": "\x1b[31m",
    "planned": "\x1b[34m", "abandoned": DIM,
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
    sorted_by: str  # value of the result or metric that the list is sorted by, if it is one


def run_rows(runs: Sequence[RunInfo], values: Values | None = None) -> list[RunRow]:
    """A row per run; `values` are those of the result or metric that the list is sorted by."""
    values = values or {}
    names = {name for name, _ in values.values()}
    rows = []
    for info in runs:
        name, value = values.get(info.path, ("", None))
        rows.append(
            RunRow(
                run=info.address,
                status=info.status,
                ended=when(info.ended) if info.ended else "",
                duration="" if info.seconds() is None else duration(info.seconds()),
                goal=info.goal or "",
                group=info.group or "",
                tags=", ".join(info.tags),
                results=_headline(info),
                # runs may call it differently, so each says what its number is
                sorted_by="" if value is None else show(value) + (f" ({name})" if len(names) > 1 else ""),
            )
        )
    return rows


def _headline(info: RunInfo) -> str:
    """Two results, the one that the run is judged by first."""
    results = results_of(info)
    key = info.judged.key(results)
    names = dict.fromkeys([*([] if key is None else [key]), *results])
    return "; ".join(f"{name} {results[name]}" for name in list(names)[:2])


# Columns in the order in which they may claim room, and the order in which they are shown.
_CLAIMS = ("run", "status", "sorted_by", "results", "duration", "ended", "goal", "group", "tags")
_SHOWN = ("run", "status", "sorted_by", "ended", "duration", "results", "goal", "group", "tags")
_LONG = {"results": 28, "goal": 24}  # columns whose texts may be cut, and the width below which they are of no use


def run_lines(
    rows: Sequence[RunRow], by: str = "created", width: int | None = None, colours: bool = False
) -> list[str]:
    """The list, a line per run under its titles; columns that are empty or find no room in `width` are left out.

    Written by hand because a thousand lines should not take a second, as they do in a table of rich.
    """
    titles = {name: by if name == "sorted_by" else name for name in _SHOWN}
    cells = {name: [clean(getattr(row, name)) for row in rows] for name in _CLAIMS}
    filled = [name for name in _CLAIMS if any(cells[name])]
    longest = {name: max(map(cell_width, [titles[name], *cells[name]])) for name in filled}
    widths = longest if width is None else _share_out(longest, width)
    shown = [name for name in _SHOWN if name in widths]
    lines = [_joined([fit(titles[name], widths[name]) for name in shown], BOLD if colours else "")]
    for place, row in enumerate(rows):
        parts = [fit(cells[name][place], widths[name]) for name in shown]
        if colours and "status" in shown:
            at = shown.index("status")
            parts[at] = f"{STYLES.get(row.status, '')}{parts[at]}{PLAIN}"
        lines.append(_joined(parts))
    hidden = [titles[name] for name in filled if name not in widths]
    if hidden:
        told = textwrap.wrap(f"no room for: {', '.join(hidden)}", width or 80)
        lines += [f"{DIM}{line}{PLAIN}" if colours else line for line in told]
    return lines


def _joined(parts: Sequence[str], style: str = "") -> str:
    line = "  ".join(parts).rstrip()
    return f"{style}{line}{PLAIN}" if style else line


def cell_width(text: str) -> int:
    """Columns of a terminal that a text takes: wide characters take two, marks on others none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fit(text: str, width: int) -> str:
    """The text filled up with blanks, or cut with an ellipsis, to exactly this width; line breaks become blanks."""
    text = text if text.isprintable() else text.replace("\n", " ").replace("\t", " ")
    over = cell_width(text) - width
    if over > 0:
        while text and cell_width(text) > width - 1:
            text = text[:-1]
        text += "…"
    return text + " " * (width - cell_width(text))


def _share_out(longest: Mapping[str, int], width: int) -> dict[str, int]:
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
