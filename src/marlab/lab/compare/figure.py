"""One figure of a comparison: curves with bands over trainings, and every group with its trainings and its interval.

Letters: S trainings, T steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from marlab.lab.compare.compare import Comparison
from marlab.lab.compare.groups import Group
from marlab.lab.compare.measure import curves_of
from marlab.lab.report.figures import Curve, curves, label
from marlab.lab.report.style import GREY, INK, MARKERS, colour, legend, panels, save, styled

MOST_CURVES = 8
"""Groups whose curves are drawn: the best ones, where there are more."""


def draw(found: Comparison, groups: Sequence[Group], out: Path, smooth: int = 1) -> Path:
    """Write the figure; without a metric that all have, only the groups."""
    lines = _lines(found, groups)
    height = max(4.2, 1.6 + 0.55 * len(found.rows))
    figure, axes = panels(1, 2 if lines else 1, size=(7.4, height), title=f"{len(found.rows)} groups")
    if lines:
        told = {"xlabel": "step", "ylabel": found.measure.curve or "", "title": "on the way", "repeats": "trainings"}
        curves(axes[0], lines, smooth=smooth, **told)
    drawn = list(lines) or [row.name for row in found.rows]
    _forest(axes[-1], found, {name: place for place, name in enumerate(drawn)})
    legend(figure)
    return save(figure, out)


def _lines(found: Comparison, groups: Sequence[Group]) -> dict[str, Curve]:
    """Name -> [S, T] values of the metric at all steps that a training of the group recorded."""
    metric = found.measure.curve
    if metric is None:
        return {}
    sign = -1.0 if found.measure.better == "lower" else 1.0
    order = sorted(found.rows, key=lambda row: -sign * row.mean.value)
    kept = {row.name for row in order[:MOST_CURVES]}
    lines = {}
    for group in groups:
        known = [line for info in group.runs for line in curves_of(info, metric).values()]
        if group.name not in kept or not known:
            continue
        steps = sorted({step for own, _ in known for step in own})
        place = {step: i for i, step in enumerate(steps)}
        values = np.full((len(known), len(steps)), np.nan)  # [S, T]
        for row, (own, line) in zip(values, known):
            row[[place[step] for step in own]] = line
        lines[group.name] = Curve(steps, values)
    return lines


@styled
def _forest(ax: Axes, found: Comparison, looks: Mapping[str, int]) -> None:
    """Groups from top to bottom: small marks are trainings, large ones means, lines their 95 % intervals.

    A group looks like its curve; `looks` has its number there, and groups without a curve are grey.
    """
    for place, row in enumerate(found.rows):
        number = looks.get(row.name)
        shade, marker = (GREY, "o") if number is None else (colour(number), MARKERS[number % len(MARKERS)])
        values = [member.value for member in row.members]
        ax.scatter(values, [place + 0.16] * len(values), s=22, color=shade, alpha=0.55, linewidths=0)
        if row.mean.low is not None and row.mean.high is not None:
            ax.hlines(place, row.mean.low, row.mean.high, color=shade, linewidth=2.4)
        ax.plot([row.mean.value], [place], marker=marker, color=shade, markersize=9, markeredgecolor="white",
                linestyle="none")  # fmt: skip
    reference = found.row(found.against).mean.value
    ax.axvline(reference, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
    ax.set_yticks(range(len(found.rows)), [_told(row.name, row.outcome) for row in found.rows])
    ax.set_ylim(len(found.rows) - 0.5, -0.5)
    unit = f" [{found.measure.unit}]" if found.measure.unit else ""
    label(ax, f"{found.measure.title}{unit}", "", "at the end: means, 95 %")


def _told(name: str, outcome: str | None) -> str:
    short = name if len(name) <= 40 else name[:39] + "…"
    return f"{short}\n{'the reference' if outcome is None else 'cannot tell' if outcome == 'unknown' else outcome}"
