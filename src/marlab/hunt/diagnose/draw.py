"""What all pictures of a diagnosis share: how they are saved, and legends that belong to one panel."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from marlab.hunt.diagnose.parts import Picture
from marlab.lab.report.style import save, styled


def save_picture(figure: Figure, out: Path, name: str, caption: str) -> Picture:
    """Write a figure into the folder of the report."""
    save(figure, out / name)
    return Picture(name, caption)


@styled
def explain(*axes: Axes) -> None:
    """A legend below each panel, for panels that show different things."""
    for ax in axes:
        entries = dict(zip(*reversed([list(reversed(x)) for x in ax.get_legend_handles_labels()])))  # one per label
        names = list(reversed(entries))
        wide = max(len(name) for name in names) * 0.1 + 0.8  # inches of an entry
        columns = max(1, min(len(names), int(ax.get_window_extent().width / ax.figure.dpi / wide)))
        ax.legend([entries[n] for n in names], names, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns)
