"""One figure of a comparison: curves with bands over trainings, and every group with its trainings and its interval.

Letters: S trainings, T steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from marlab.lab.compare.compare import Comparison
from marlab.lab.compare.groups import Group
from marlab.lab.compare.measure import curves_of
from marlab.lab.report.figures import Curve, curves, label
from marlab.lab.report.style import INK, MARKERS, colour, legend, panels, save, styled

MOST_CURVES = 8
"""Groups whose curves are drawn: the best ones, where there are more."""


def draw(found: Comparison, groups: Sequence[Group], out: Path, smooth: int = 1) -> Path:
    """Write the figure; without a metric that all have, only the groups."""
    lines = _lines(found, groups)
    title = f"{found.measure.title}, {len(found.rows)} groups"
    height = max(3.6, 1.6 + 0.42 * len(found.rows))
    figure, axes = panels(1, 2 if lines else 1, size=(7.4, height), title=title)
    if lines:
        name = found.measure.curve or ""
        curves(
            axes[0], lines, xlabel="step", ylabel=name, title="how it came about", smooth=smooth, repeats="trainings"
        )
        legend(axes[0])
    _forest(axes[-1], found)
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
def _forest(ax: Axes, found: Comparison) -> None:
    """Groups from top to bottom: small marks are trainings, large ones means, lines their 95 % intervals."""
    for place, row in enumerate(found.rows):
        values = [member.value for member in row.members]
        ax.scatter(values, [place + 0.16] * len(values), s=22, color=colour(place), alpha=0.55, linewidths=0)
        if row.mean.low is not None and row.mean.high is not None:
            ax.hlines(place, row.mean.low, row.mean.high, color=colour(place), linewidth=2.4)
        ax.plot([row.mean.value], [place], marker=MARKERS[place % len(MARKERS)], color=colour(place), markersize=9,
                markeredgecolor="white", linestyle="none")  # fmt: skip
    reference = found.row(found.against).mean.value
    ax.axvline(reference, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0)
    ax.set_yticks(range(len(found.rows)), [_told(row.name, row.outcome) for row in found.rows])
    ax.set_ylim(len(found.rows) - 0.5, -0.5)
    unit = f" [{found.measure.unit}]" if found.measure.unit else ""
    label(ax, f"{found.measure.title}{unit}", "", "means with 95 % intervals, and trainings")


def _told(name: str, outcome: str | None) -> str:
    short = name if len(name) <= 40 else name[:39] + "…"
    return f"{short}\n{'the reference' if outcome is None else 'one value each' if outcome == 'unknown' else outcome}"
