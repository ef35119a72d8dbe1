"""Three pictures of beliefs: how they grow over days, whom partners are taken for, whether they can be trusted."""

from __future__ import annotations

import numpy as np

from marlab.lab.report import figures, heat, style
from marlab.lab.runs.run import Run
from marlab.market.beliefs.calibration import Quality
from marlab.market.rules.beliefs import STRANGER

COLUMNS = 5
LONGEST = 20
"""Letters of a name in a title."""
WHAT = ("its own type", STRANGER)


def draw(found: Quality, run: Run) -> None:
    """All figures of a run."""
    _days(found, run)
    names = [*found.types, STRANGER]
    agents = list(found.mistaken)
    figure, axes = style.panels(1, 1, size=(3.2 + 0.62 * len(names), 2.2 + 0.42 * len(agents)))
    shares = np.array([[found.mistaken[agent][name] for name in names] for agent in agents])
    heat.heat_map(
        axes[0], shares, xlabel="believed", ylabel="partner", rows=[a[:LONGEST] for a in agents],
        columns=[name[:LONGEST] for name in names], limits=(0.0, 1.0), title="Whom partners are taken for at the end",
    )  # fmt: skip
    for text in axes[0].get_xticklabels():
        text.set(rotation=60, ha="right", rotation_mode="anchor")
    style.save(figure, run.figure("mistaken.png"))
    figure, axes = style.panels(1, 1, size=(6.2, 6.8))
    figures.reliability(axes[0], found.reliability, title="The likeliest type, all mornings", name="beliefs")
    style.legend(figure)
    style.save(figure, run.figure("reliability.png"))


def _days(found: Quality, run: Run) -> None:
    """One small panel for every agent: how likely its own type is, where it has one, and the stranger."""
    unknown = {name: ([np.nan] * len(line), line) for name, line in found.strangers.items()}
    lines = {name: (line, found.strange[name]) for name, line in found.by_type.items()} | unknown
    rows = -(-len(lines) // COLUMNS)
    figure, axes = style.panels(rows, COLUMNS, size=(2.9, 2.3), share_x=True, share_y=True)
    for ax, (name, pair) in zip(axes, lines.items()):
        curves = {what: figures.Curve(np.arange(len(line)), np.array(line)) for what, line in zip(WHAT, pair)}
        figures.curves(ax, curves, xlabel="days of talking", ylabel="probability", title=name[:LONGEST])
        ax.set_ylim(0, 1)
    for ax in axes[len(lines) :]:
        ax.set_visible(False)
    style.legend(figure)
    style.save(figure, run.figure("days.png"))
