"""Three pictures of clones beside their experts: when they leave, what they offer, what they earn."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from marlab.lab.report import figures, style
from marlab.lab.runs.run import Run
from marlab.lab.stats import Measured
from marlab.market.simulator.seating import POSITIONS
from marlab.market.vector.rounds import ROUNDS

FEWEST = 20
"""Decisions in a round below which a share says nothing."""
FEWEST_SEATS = 5
"""Seats below which an interval would hide everything else."""


def draw(found: dict[str, Any], run: Run) -> None:
    """All figures of a run."""
    experts = found["experts"]
    if experts:
        _grid(experts, _hazard, run, "leaving.png")
        _grid(experts, _lots, run, "lots.png")
    if found["scores"]:
        figure, axes = style.panels(1, 1, size=(7.4, 6.4))
        _scores(axes[0], found["scores"])
        style.legend(axes[0])
        style.save(figure, run.figure("scores.png"))


def _grid(experts: dict[str, Any], one: Any, run: Run, name: str) -> None:
    columns = min(3, len(experts))
    rows = -(-len(experts) // columns)
    figure, axes = style.panels(rows, columns, size=(3.9, 2.9))
    for ax, (title, each) in zip(axes, experts.items()):
        one(ax, title[:24], each)
    for ax in axes[len(experts) :]:
        ax.set_visible(False)
    style.legend(figure)
    style.save(figure, run.figure(name))


def _hazard(ax: Axes, title: str, each: dict[str, Any]) -> None:
    rows = [row if row["decisions"] >= FEWEST else None for row in each["hazard"]]

    def line(side: str) -> figures.Curve:
        values = [Measured(None) if row is None else row[side] for row in rows]
        return figures.Curve(
            np.arange(ROUNDS), *(_floats([getattr(v, k) for v in values]) for k in ("value", "low", "high"))
        )

    figures.curves(
        ax, {"expert": line("expert"), "clone": line("clone")}, xlabel="round", ylabel="leaves [share]", title=title
    )
    ax.set_ylim(-0.03, 1.03)


def _lots(ax: Axes, title: str, each: dict[str, Any]) -> None:
    shares = each["distributions"]["lot"]
    x = np.arange(1, 1 + len(shares["expert"]))
    series = {side: figures.Curve(x, np.array(shares[side])) for side in ("expert", "clone") if len(x)}
    figures.curves(ax, series, xlabel="lot [units]", ylabel="offers [share]", title=title)


@style.styled
def _scores(ax: Axes, scores: dict[str, Any]) -> None:
    low, high = np.inf, -np.inf
    for number, place in enumerate(POSITIONS):
        rows = [table[place] for table in scores.values() if place in table]
        real, clone = ([row[side].number for row in rows] for side in ("real", "clone"))
        ax.plot(real, clone, style.MARKERS[number], color=style.colour(number), label=place, markersize=8)
        for row in rows:
            if row["seats"] >= FEWEST_SEATS and row["real"].low is not None:
                ax.plot(
                    [row["real"].low, row["real"].high],
                    [row["clone"].number] * 2,
                    color=style.colour(number),
                    alpha=0.3,
                )
                ax.plot(
                    [row["real"].number] * 2,
                    [row["clone"].low, row["clone"].high],
                    color=style.colour(number),
                    alpha=0.3,
                )
        low, high = min([low, *real, *clone]), max([high, *real, *clone])
    ax.plot([low, high], [low, high], color=style.GREY, linewidth=1.2)
    figures.label(
        ax, "score in real worlds", "score in worlds of clones", "Agents by place in the chain (held-out worlds)"
    )


def _floats(values: list[Any]) -> np.ndarray:
    return np.array([np.nan if value is None else float(value) for value in values])
