"""Runs in order of a column, a result or a metric, each by the name that people call it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.report.facts import last_metrics, results_of
from marlab.lab.runs.records import RunInfo
from marlab.lab.stats import Measured

COLUMNS: dict[str, Callable[[RunInfo], Any]] = {
    "created": lambda info: moment_of(info.created), "ended": lambda info: moment_of(info.ended),
    "name": lambda info: info.id, "run": lambda info: info.id, "world": lambda info: info.world,
    "status": lambda info: info.status, "duration": lambda info: info.seconds(), "seed": lambda info: info.seed,
    "goal": lambda info: info.goal, "group": lambda info: info.group, "tags": lambda info: info.tags or None,
}  # fmt: skip
"""What every run has, by the name of its column; None where a run does not have it."""
BOUNDARIES = " /:_"
"""What may stand before the short name of a result or metric: `survival` is short for `final model: survival`."""
Values = dict[Path, tuple[str, float]]
"""Run -> the full name of what was asked for, and its value."""
MOST_NAMES = 12  # that a sentence lists


def find_name(asked: str, names: Iterable[str]) -> list[str]:
    """The names that `asked` may mean: the very same, or else all that end with it."""
    known = list(dict.fromkeys(names))
    if asked in known:
        return [asked]
    short = asked.casefold()
    ends = [name for name in known if name.casefold().endswith(short)]
    return [name for name in ends if name[: -len(short)].endswith(tuple(BOUNDARIES)) or name.casefold() == short]


def result_named(info: RunInfo, asked: str) -> tuple[str, float] | None:
    """(name, value) of the result that `asked` means: of several the one that the run is judged by, or the first."""
    numbers = {name: found.number for name, found in results_of(info).items()}
    meant = [name for name in find_name(asked, numbers) if numbers[name] is not None]
    if not meant:
        return None
    preferred = [name for name in info.judged.results if name in meant]
    name = [*preferred, *meant][0]
    return name, float(numbers[name] or 0.0)


def values_by(runs: Sequence[RunInfo], asked: str) -> Values:
    """Run -> (name, value) of a result or else of the metric that `asked` means, of all runs that have it."""
    found = {info.path: value for info in runs if (value := result_named(info, asked)) is not None}
    if found or not runs:
        return found
    latest = {info.path: last_metrics(info) for info in runs}
    metrics = sorted({name for logged in latest.values() for name in logged})
    meant = find_name(asked, metrics)
    if not meant:
        raise UserError(_unknown(asked, sorted({name for info in runs for name in info.results}), metrics))
    if len(meant) > 1:
        raise UserError(f"'{asked}' may be any of the metrics {_listed(meant)}; say which.")
    values = {run: Measured(logged[meant[0]][1]).number for run, logged in latest.items() if meant[0] in logged}
    return {run: (meant[0], value) for run, value in values.items() if value is not None}


def sort_runs(
    runs: Sequence[RunInfo], by: str = "created", reverse: bool = False, values: Values | None = None
) -> list[RunInfo]:
    """Runs in order of a column, a result or a metric (whose `values` may be known already); runs without the value
    come last."""
    known = values if values is not None or by in COLUMNS else values_by(runs, by)

    def key(info: RunInfo) -> Any:
        if known is None:
            return COLUMNS[by](info)
        return known[info.path][1] if info.path in known else None

    ordered = sorted(runs, key=lambda info: info.id)
    have = [(value, info) for info in ordered if (value := key(info)) is not None]
    have.sort(key=lambda pair: pair[0], reverse=reverse)
    return [info for _, info in have] + [info for info in ordered if key(info) is None]


def _unknown(asked: str, results: Sequence[str], metrics: Sequence[str]) -> str:
    near = difflib.get_close_matches(asked, [*COLUMNS, *results, *metrics], n=3, cutoff=0.4)
    close = f" close to it: {', '.join(near)};" if near else ""
    kinds = {"columns": list(COLUMNS), "results": results, "metrics": metrics}
    there = "; ".join(f"the {kind} {_listed(names)}" for kind, names in kinds.items() if names)
    return f"No run has a result or metric '{asked}' to sort by;{close} there are {there}."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def moment_of(stamp: str | None) -> float | None:
    """A stored time as a number, so that different time zones sort right."""
    try:
        moment = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
