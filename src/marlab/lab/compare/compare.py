"""Groups of runs compared by one figure: means, differences with intervals, and which of them are more than noise.

Where groups were trained with the same seeds, differences are taken seed by seed; where only one training of each is
known, of one seed, case by case (arenas, configs, starts that both met); else by Welch. Intervals of all differences
together hold with 95 %: each is as much wider as there are differences (Bonferroni), because among many one is lucky.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from marlab.lab.compare.groups import Group, differing
from marlab.lab.compare.measure import Measure, Member, choose_measure, members, shared_results
from marlab.lab.errors import UserError
from marlab.lab.report.facts import results_of
from marlab.lab.runs.files import plain_json
from marlab.lab.runs.judged import Better
from marlab.lab.stats import Interval, Measured, bootstrap, iqm, student, welch

LEVEL = 0.95
FEWEST_FOR_IQM = 4
How = Literal["seeds", "apart", "cases", "single"]
Outcome = Literal["better", "worse", "higher", "lower", "within noise", "equal", "unknown"]


@dataclass(frozen=True)
class Difference:
    """One group minus another."""

    value: float
    low: float | None
    high: float | None
    how: How
    """seeds: paired over shared seeds; cases: paired over shared cases of one training each; apart: Welch; single:
    one training of one or both, of different seeds or without cases, so that nothing tells chance from difference."""
    pairs: int
    """Pairs, or with `apart` the trainings of the smaller group."""

    def outcome(self, better: Better | None) -> Outcome:
        """What it says about the first of the two."""
        if self.low is None or self.high is None:
            return "unknown"
        if self.value == self.low == self.high == 0:
            return "equal"
        if self.low <= 0 <= self.high:
            return "within noise"
        if better is None:
            return "higher" if self.value > 0 else "lower"
        return "better" if (self.value > 0) == (better == "higher") else "worse"

    def needed(self) -> int | None:
        """About how many pairs would tell a difference of this size from noise; None where nothing is known."""
        if self.low is None or self.high is None or self.value == 0 or self.how == "single":
            return None
        return math.ceil(self.pairs * max(1.0, (self.high - self.low) / 2 / abs(self.value)) ** 2)


@dataclass(frozen=True)
class Row:
    """A group in the table."""

    name: str
    runs: int
    members: list[Member]
    mean: Measured  # with Student's interval over trainings, over cases of a single one, or as its run stored it
    iqm: Measured | None  # interquartile mean, of four trainings or more
    difference: Difference | None  # to the reference; None for the reference itself
    outcome: Outcome | None


@dataclass(frozen=True)
class Comparison:
    """Everything that was found."""

    world: str
    measure: Measure
    against: str
    rows: list[Row]
    best: str
    second: Difference | None  # the best minus the second best, as sure as all pairs together demand
    runner_up: str | None
    settings: Mapping[str, list[str]]  # every setting that differs, seeds last -> its value in each row
    others: Mapping[str, list[Measured]]  # further results that all have, means over trainings
    unfinished: list[str]  # runs that have not come to their end

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "world": self.world, "measure": self.measure.title, "unit": self.measure.unit,
            "better": self.measure.better, "against": self.against, "best": self.best, "runner_up": self.runner_up,
            "best_minus_runner_up": None if self.second is None else asdict(self.second),
            "rows": [
                {
                    "name": row.name, "runs": row.runs, "mean": _table(row.mean), "iqm": _table(row.iqm),
                    "by_training": [{"run": m.run, "seed": m.seed, "value": m.value} for m in row.members],
                    "difference": None if row.difference is None else asdict(row.difference), "outcome": row.outcome,
                }
                for row in self.rows
            ],
            "settings": dict(self.settings),
            "others": {name: [_table(value) for value in row] for name, row in self.others.items()},
            "unfinished": self.unfinished,
        }  # fmt: skip
        plain: dict[str, Any] = plain_json(found)
        return plain


def _table(value: Measured | None) -> dict[str, Any] | None:
    return None if value is None else {"value": value.value, "low": value.low, "high": value.high}


def compare_groups(
    groups: Sequence[Group], metric: str | None = None, better: Better | None = None, against: str | None = None
) -> Comparison:
    """Every group beside the one named `against` (the first, unless said)."""
    names = [group.name for group in groups]
    reference = names[0] if against is None else against
    if reference not in names:
        raise UserError(f"There is no group '{reference}' to compare with; there are {', '.join(names)}.")
    measure = choose_measure(groups, metric, better)
    values = {group.name: members(group, measure) for group in groups}
    empty = next((name for name, found in values.items() if not found), None)
    if empty is not None:
        raise UserError(f"'{empty}' has no value of {measure.title}.")
    ordered = _ranked(values, measure.better)
    level = _shared_level(len(groups) - 1)
    rows = []
    for group in groups:
        mine = values[group.name]
        gap = None if group.name == reference else difference(mine, values[reference], level)
        outcome = None if gap is None else gap.outcome(measure.better)
        rows.append(Row(group.name, len(group.runs), mine, _mean(mine, measure), _iqm(mine), gap, outcome))
    second = ordered[1] if len(ordered) > 1 else None
    pairs = len(groups) * (len(groups) - 1) // 2
    return Comparison(
        groups[0].runs[0].world, measure, reference, rows, ordered[0],
        None if second is None else difference(values[ordered[0]], values[second], _shared_level(pairs)), second,
        {**differing(groups), **_seeds(values)}, _others(groups, measure),
        [f"{info.id} is {info.status}" for g in groups for info in g.runs if info.status != "finished"],
    )  # fmt: skip


def _ranked(values: Mapping[str, list[Member]], better: Better | None) -> list[str]:
    """Names, the best mean first (the highest where nobody says what is better)."""
    sign = -1 if better == "lower" else 1
    return sorted(values, key=lambda name: -sign * float(np.mean([m.value for m in values[name]])))


def _shared_level(differences: int) -> float:
    """The level of each of so many intervals that hold with 95 % together."""
    return 1 - (1 - LEVEL) / max(1, differences)


def difference(mine: Sequence[Member], theirs: Sequence[Member], level: float = LEVEL) -> Difference:
    """The mean of one group minus that of another, in the narrowest way that the data allow."""
    a, b = ({m.seed: m for m in side} for side in (mine, theirs))
    named = len(a) == len(mine) and len(b) == len(theirs)
    if named and len(a) > 1 and a.keys() == b.keys():
        gaps = [_gap(a[seed], b[seed]) for seed in a]
        return _with(float(np.mean(gaps)), student(gaps, level), "seeds", len(gaps))
    left, right = [m.value for m in mine], [m.value for m in theirs]
    gap = float(np.mean(left) - np.mean(right))
    if len(left) > 1 and len(right) > 1:
        return _with(gap, welch(left, right, level), "apart", min(len(left), len(right)))
    if len(mine) == len(theirs) == 1 and (mine[0].seed == theirs[0].seed or not (mine[0].seed and theirs[0].seed)):
        one, other = mine[0].cases, theirs[0].cases
        shared = [one[case] - other[case] for case in one if case in other]
        if len(shared) > 1:
            return _with(float(np.mean(shared)), student(shared, level), "cases", len(shared))
    return Difference(gap, None, None, "single", 1)


def _with(value: float, interval: Interval | None, how: How, pairs: int) -> Difference:
    low, high = interval or (None, None)
    return Difference(value, low, high, how, pairs)


def _gap(a: Member, b: Member) -> float:
    """Over the cases that both met, if there are any: what else they met says nothing about their difference."""
    shared = [case for case in a.cases if case in b.cases]
    return float(np.mean([a.cases[c] - b.cases[c] for c in shared])) if shared else a.value - b.value


def _seeds(values: Mapping[str, list[Member]]) -> dict[str, list[str]]:
    """The seeds of every group as a row of the settings, where they differ."""
    told = [", ".join(m.seed for m in group if m.seed) for group in values.values()]
    return {"seed": told} if len(set(told)) > 1 else {}


def _mean(group: Sequence[Member], measure: Measure) -> Measured:
    values = [m.value for m in group]
    if len(values) > 1:
        interval = student(values)
    else:
        interval = student(list(group[0].cases.values())) or group[0].interval
    low, high = interval or (None, None)
    return Measured(float(np.mean(values)), low, high, measure.unit)


def _iqm(group: Sequence[Member]) -> Measured | None:
    values = [m.value for m in group]
    if len(values) < FEWEST_FOR_IQM:
        return None
    return Measured(float(iqm(values)), *(bootstrap(values, statistic=iqm) or (None, None)))


def _others(groups: Sequence[Group], measure: Measure) -> dict[str, list[Measured]]:
    used = set(measure.names.values()) if measure.kind == "result" else set()
    found = {}
    for name in shared_results(groups):
        if name not in used:
            numbers = [[float(results_of(info)[name].number or 0.0) for info in group.runs] for group in groups]
            found[name] = [Measured(float(np.mean(row)), *(student(row) or (None, None))) for row in numbers]
    return found
