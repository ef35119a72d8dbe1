"""Synchronous successive halving: all settings are trained to a rung, and the best of them go on.

The values at a rung are read from the metrics up to its step, so that a sweep which is resumed decides again as it did,
also when some trainings are further by now.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from marlab.lab.errors import UserError
from marlab.lab.report.curves import level
from marlab.lab.report.sorting import find_name
from marlab.lab.runs.judged import Better
from marlab.lab.runs.metrics import column, read_metrics

FEWEST = 2
"""Settings that go on at least: a winner alone could not be compared with anything."""


@dataclass(frozen=True)
class Rung:
    """What was decided at a rung."""

    step: int
    metric: str
    scores: Mapping[str, float]  # setting -> mean over its seeds
    kept: list[str]

    @property
    def dropped(self) -> list[str]:
        return [name for name in self.scores if name not in self.kept]


def metric_named(asked: str, runs: Sequence[Path], step: int) -> str:
    """The metric that `asked` means in these runs."""
    names = {name for path in runs for row in _until(path, step) for name in row if name not in ("step", "time")}
    meant = find_name(asked, sorted(names))
    if len(meant) != 1:
        told = (
            f"may be any of {', '.join(meant[:8])}"
            if meant
            else f"is none of {', '.join(sorted(names)[:12]) or 'none'}"
        )
        raise UserError(f"The metric '{asked}' that decides at rung {step} {told}; name it with --halving.")
    return meant[0]


def score_at(path: Path, metric: str, step: int) -> float:
    """The mean of the last tenth of a metric's records up to a step; NaN where there are none."""
    return level(np.array(column(_until(path, step), metric)[1]))[1]


def _until(path: Path, step: int) -> list[dict[str, float]]:
    return [row for row in read_metrics(path / "metrics.jsonl") if row["step"] <= step]


def decide(step: int, metric: str, values: Mapping[str, Sequence[float]], keep: float, better: Better) -> Rung:
    """Which settings go on: the best share of them by the mean over their seeds, in the order of the plan."""
    scores = {name: float(np.mean(row)) for name, row in values.items()}
    sign = -1.0 if better == "higher" else 1.0
    order = sorted(scores, key=lambda name: math.inf if math.isnan(scores[name]) else sign * scores[name])
    best = order[: max(FEWEST, math.ceil(keep * len(order)))]
    return Rung(step, metric, scores, [name for name in scores if name in best])


def decide_between(paths: Mapping[str, Sequence[Path]], step: int, asked: str, keep: float, better: Better) -> Rung:
    """The decision at a rung between settings whose trainings lie there; `asked` names the metric."""
    metric = metric_named(asked, [path for row in paths.values() for path in row], step)
    values = {name: [score_at(path, metric, step) for path in row] for name, row in paths.items()}
    return decide(step, metric, values, keep, better)
