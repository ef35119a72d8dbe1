"""What runs are compared by: the result that they are judged by, or another result or metric, and its values.

A member is one training: a run, or one seed of a run that trains several. Where the value of a member comes from single
cases (arenas, configs, starts), they are kept beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from marlab.lab.compare.groups import Group
from marlab.lab.errors import UserError
from marlab.lab.report.curves import Line, level
from marlab.lab.report.facts import last_metrics, results_of
from marlab.lab.report.sorting import find_name, result_named
from marlab.lab.runs.judged import Better, read_cases
from marlab.lab.runs.metrics import column, read_metrics
from marlab.lab.runs.records import RunInfo
from marlab.lab.stats import Interval

OF_A_SEED = re.compile(r"seed_(\d+)/(.+)")


@dataclass(frozen=True)
class Measure:
    """A figure that all runs have."""

    title: str
    kind: Literal["result", "metric"]
    names: Mapping[Path, str] = field(repr=False)  # what each run calls it
    better: Better | None = None  # None: nobody says which way is better
    curve: str | None = None  # the metric that shows how it came about
    unit: str | None = None


@dataclass(frozen=True)
class Member:
    """One training's value."""

    run: str
    seed: str  # empty where there is none
    value: float
    cases: Mapping[str, float] = field(default_factory=dict, repr=False)
    interval: Interval | None = None  # as the run stored it


def choose_measure(groups: Sequence[Group], asked: str | None = None, better: Better | None = None) -> Measure:
    """The figure to compare by: what is asked for, or what the runs are judged by, or the first result they share."""
    runs = [info for group in groups for info in group.runs]
    return _asked_for(runs, asked, better) if asked is not None else _judged_by(runs, better)


def _asked_for(runs: Sequence[RunInfo], asked: str, better: Better | None) -> Measure:
    found = {info.path: result_named(info, asked) for info in runs}
    named = {path: value[0] for path, value in found.items() if value is not None}
    if len(named) == len(runs):
        if len({_kind(info, named[info.path]) for info in runs}) > 1:
            raise UserError(f"'{asked}' is not the same in all runs ({_listed(runs, named)}); give a longer name.")
        return _result(runs, named, better)
    metrics = [_metrics_of(info) for info in runs]
    shared = find_name(asked, sorted(set.intersection(*metrics)))
    if len(shared) > 1:
        raise UserError(f"'{asked}' may be any of {', '.join(shared)}; say which.")
    if not shared:
        without = next(info.id for info, names in zip(runs, metrics) if not find_name(asked, names))
        known = ", ".join(_shared_results(runs)) or "none"
        raise UserError(f"{without} has no result or metric '{asked}'; results that all runs have: {known}.")
    return _metric(runs, shared[0], better)


def _metrics_of(info: RunInfo) -> set[str]:
    """Names of a run's metrics; those of its seeds are one metric."""
    return {of_seed[2] if (of_seed := OF_A_SEED.fullmatch(name)) else name for name in last_metrics(info)}


def _judged_by(runs: Sequence[RunInfo], better: Better | None) -> Measure:
    judged = {info.path: _judged_results(info) for info in runs}
    # The very same figure of all, or one of the same kind, such as survival of the final model beside survival alone.
    for of in (lambda info, name: (name, *_kind(info, name)), _kind):
        for wanted in (of(runs[0], name) for name in judged[runs[0].path]):
            found = {i.path: next((n for n in judged[i.path] if of(i, n) == wanted), None) for i in runs}
            if None not in found.values():
                return _result(runs, {path: str(name) for path, name in found.items()}, better)
    shared = _shared_results(runs)
    if all(judged.values()):
        names = _listed(runs, {path: own[0] for path, own in judged.items()})
        told = f"results that all have, for --metric: {', '.join(shared)}" if shared else "they share no result"
        raise UserError(f"These runs are judged by different measures ({names}); {told}.")
    metrics = {info.judged.metric for info in runs}
    metric = next(iter(metrics))
    if len(metrics) == 1 and metric is not None and all(metric in _metrics_of(info) for info in runs):
        return _metric(runs, metric, better)
    if not shared:
        raise UserError("These runs have no result or metric in common that could be compared.")
    return _result(runs, {info.path: shared[0] for info in runs}, better)


def _judged_results(info: RunInfo) -> list[str]:
    """The results that a run has of those that it is judged by."""
    found = results_of(info)
    return [name for name in info.judged.results if name in found and found[name].number is not None]


def _kind(info: RunInfo, name: str) -> tuple[str, str | None]:
    """What a result measures: `final model: survival` and `survival` in one unit may stand in one column."""
    return name.rpartition(": ")[2], results_of(info)[name].unit


def _listed(runs: Sequence[RunInfo], names: Mapping[Path, str]) -> str:
    return ", ".join(f"{info.name}: {names[info.path]}" for info in runs[:4] if info.path in names)


def _result(runs: Sequence[RunInfo], names: Mapping[Path, str], better: Better | None) -> Measure:
    titles = list(dict.fromkeys(names.values()))
    units = {results_of(info)[names[info.path]].unit for info in runs}
    known = {info.judged.better for info in runs if names[info.path] in info.judged.results}
    curves = {info.judged.metric for info in runs if names[info.path] in info.judged.results}
    return Measure(
        " / ".join(titles[:2]), "result", names, better or (known.pop() if len(known) == 1 else None),
        curves.pop() if len(curves) == 1 else None, units.pop() if len(units) == 1 else None,
    )  # fmt: skip


def _metric(runs: Sequence[RunInfo], name: str, better: Better | None) -> Measure:
    known = {info.judged.better for info in runs if info.judged.metric == name}
    direction = better or (known.pop() if len(known) == 1 else None)
    return Measure(f"{name} at the end", "metric", dict.fromkeys((info.path for info in runs), name), direction, name)


def _shared_results(runs: Sequence[RunInfo]) -> list[str]:
    """Names of results that are numbers in every run, in the order of the first one."""
    tables = [{name for name, found in results_of(info).items() if found.number is not None} for info in runs]
    return [name for name in runs[0].results if all(name in table for table in tables)]


def shared_results(groups: Sequence[Group]) -> list[str]:
    return _shared_results([info for group in groups for info in group.runs])


def members(group: Group, measure: Measure) -> list[Member]:
    """The values of a group, in the order of its seeds."""
    found = [each for info in group.runs for each in _of_run(info, measure)]
    return sorted(found, key=lambda member: (len(member.seed), member.seed, member.run))


def _of_run(info: RunInfo, measure: Measure) -> list[Member]:
    name, seed = measure.names[info.path], "" if info.seed is None else str(info.seed)
    if measure.kind == "metric":
        lines = curves_of(info, name)
        return [Member(info.id, own or seed, level(values)[1]) for own, (_, values) in lines.items()]
    cases = {own: row for own, row in read_cases(info.path).get(name, {}).items() if row}
    if cases:
        return [Member(info.id, own or seed, float(np.mean(list(row.values()))), row) for own, row in cases.items()]
    result = results_of(info)[name]
    interval = None if result.low is None or result.high is None else (result.low, result.high)
    return [Member(info.id, seed, float(result.number or 0.0), interval=interval)]


def curves_of(info: RunInfo, metric: str) -> dict[str, tuple[list[int], Line]]:
    """Seed -> (steps, values) of a metric: of every seed of a run that trains several, else of the run (seed "")."""
    rows = read_metrics(info.path / "metrics.jsonl")
    seeds = sorted({m[1] for row in rows for key in row if (m := OF_A_SEED.fullmatch(key)) and m[2] == metric}, key=int)
    names: dict[str, Any] = {seed: f"seed_{seed}/{metric}" for seed in seeds} or {"": metric}
    found = {seed: column(rows, name) for seed, name in names.items()}
    return {seed: (steps, np.array(values)) for seed, (steps, values) in found.items() if values}
