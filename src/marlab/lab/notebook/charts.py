"""Metrics of a run as lines for pages: thinned, seeds of a run joined to a mean with its band, and a spark for lists.

Letters: S seeds, T records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.notebook.panels import called
from marlab.lab.notebook.words import LANGUAGES
from marlab.lab.report.sorting import moment_of
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import RunInfo
from marlab.lab.stats import mean_interval

MOST_POINTS = 300
"""Points of a line; a longer one is shown as means of neighbouring records."""
SPARK_POINTS = 32
SPARK_HEIGHT = 100
OF_A_SEED = re.compile(r"seed_(\d+)/(.+)")
CLOCK = "time"
"""The line of the moments of all records; pages tell how long was worked until a step."""


@dataclass(frozen=True)
class Line:
    """One metric."""

    name: str
    steps: NDArray[np.int64]  # [T]
    values: NDArray[np.float64]  # [S, T], one row where the run trains one seed
    seeds: Sequence[str]


def lines_of(path: Path) -> list[Line]:
    """All metrics of a run that are numbers, in the order in which they first appear."""
    columns: dict[str, tuple[list[int], list[float]]] = {}
    for row in read_metrics(path / "metrics.jsonl"):
        step = row["step"]
        for key, value in row.items():
            if type(value) is float or type(value) is int:  # neither texts nor truths
                if key not in columns:
                    columns[key] = [], []
                steps, values = columns[key]
                steps.append(step)
                values.append(value)
    by_name: dict[str, dict[str, tuple[list[int], list[float]]]] = {}
    for key, column in columns.items():
        of_seed = OF_A_SEED.fullmatch(key)
        seed, name = of_seed.groups() if of_seed else ("", key)
        if key != "step":
            by_name.setdefault(name, {})[seed] = column
    return [_line(name, by_seed) for name, by_seed in by_name.items()]


def _line(name: str, by_seed: Mapping[str, tuple[list[int], list[float]]]) -> Line:
    """Where a metric is known of the seeds, their mean over all is not asked for."""
    kept = {seed: column for seed, column in by_seed.items() if seed} or by_seed
    steps = np.unique(np.concatenate([np.asarray(own) for own, _ in kept.values()]))
    values = np.full((len(kept), len(steps)), np.nan)  # [S, T]
    for row, (own, numbers) in zip(values, kept.values()):
        row[np.searchsorted(steps, own)] = numbers
    return Line(name, steps, np.where(np.isfinite(values), values, np.nan), list(kept))


def thinned(line: Line, most: int = MOST_POINTS) -> Line:
    """Means of neighbouring records, so that there are `most` points at most; a point stands at its last record."""
    size = math.ceil(len(line.steps) / most)
    if size <= 1:
        return line
    starts = np.arange(0, len(line.steps), size)
    ends = np.minimum(starts + size, len(line.steps)) - 1
    known = np.isfinite(line.values)
    sums = np.add.reduceat(np.where(known, line.values, 0.0), starts, axis=1)
    counts = np.add.reduceat(known.astype(float), starts, axis=1)
    values = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return Line(line.name, line.steps[ends], values, line.seeds)


def line_data(line: Line, package: str | None) -> dict[str, Any]:
    """A line as pages draw it: the mean of its seeds with Student's band where there are several."""
    thin = thinned(line)
    names = {lang: called(package, line.name, "METRICS", lang) or line.name for lang in LANGUAGES}
    data: dict[str, Any] = {"metric": line.name, "names": names, "x": thin.steps.tolist()}
    if len(thin.values) == 1:
        data["y"] = rounded(thin.values[0])
    else:
        mean, low, high = mean_interval(thin.values, axis=0)
        data |= {"y": rounded(mean), "low": rounded(low), "high": rounded(high), "seeds": len(thin.values)}
    return data


def clock(lines: Sequence[Line], attempts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Seconds of work until each record, without the pauses between attempts; None where no moment is recorded."""
    found = next((line for line in lines if line.name == CLOCK), None)
    if found is None:
        return None
    thin = thinned(found)
    moments = thin.values[0]
    starts = [s for a in attempts if (s := moment_of(a.get("started"))) is not None]
    seconds = np.zeros(len(moments))
    for start, later in zip(starts, [*starts[1:], math.inf]):
        end = max((m for m in moments if start <= m < later), default=start)  # of those who died without a word, too
        seconds += np.clip(moments, start, end) - start
    if not starts or not seconds.any():
        seconds = moments - moments[0]
    return {"x": thin.steps.tolist(), "y": rounded(np.round(seconds, 1))}


def rounded(values: NDArray[np.float64]) -> list[float | None]:
    """Five digits are more than a screen shows; what is not known is None."""
    known = np.isfinite(values)
    safe = np.where(known & (values != 0), values, 1.0)
    places = np.clip(4 - np.floor(np.log10(np.abs(safe))), -300, 300)
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    short = np.where(values == 0, 0.0, np.round(safe / down * up) * down / up)
    return [x if ok else None for x, ok in zip(short.tolist(), known.tolist())]


def spark(lines: Sequence[Line], metric: str | None) -> list[int | None]:
    """The metric that counts as a few heights from 0 to SPARK_HEIGHT; empty where there is none."""
    found = next((line for line in lines if line.name == metric), None)
    if found is None or len(found.steps) < 2:
        return []
    thin = thinned(found, SPARK_POINTS)
    known = np.isfinite(thin.values)
    if not known.any():
        return []
    count, total = known.sum(axis=0), np.where(known, thin.values, 0.0).sum(axis=0)
    mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    low, high = np.nanmin(mean), np.nanmax(mean)
    share = (mean - low) / (high - low) if high > low else mean * 0 + 0.5
    return [None if math.isnan(value) else round(SPARK_HEIGHT * float(value)) for value in share]


def ordered(lines: Sequence[Line], info: RunInfo) -> list[Line]:
    """The metric that the run is judged by first, then as recorded, times last; lines without a number are left out."""

    def place(line: Line) -> int:
        first = line.name == info.judged.metric
        return 0 if first else 3 if line.name == CLOCK else 2 if line.name.startswith("time/") else 1

    return sorted((line for line in lines if np.isfinite(line.values).any()), key=place)
