"""The one look of every figure: sizes, colours, marks, and how a figure reaches the disk.

Figures are made without pyplot, so nothing stays open and no global state changes. Every helper draws inside
`styled`, which starts from matplotlib's own defaults: a person's matplotlibrc cannot change a figure, and the same
data gives the same bytes.
"""

from __future__ import annotations

import functools
import io
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.style import context as style_context

from marlab.lab.runs.files import replacing, write_text

P = ParamSpec("P")
R = TypeVar("R")

DPI = 150
INK = "#222222"
GREY = "#6b6b6b"
EMPTY = "no data"
"""Mark of a panel that has nothing to show."""

# Okabe and Ito's colours, which stay apart for every common kind of colour blindness, darkest contrasts first;
# their yellow is left out because it vanishes on white. Marks, dashes and hatches repeat the distinction in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#444444")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)), (0, (9, 2)), (0, (1, 1)), (0, (4, 1, 1, 1, 1, 1)))
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "++", "ooo")

_IN_THE_DARK = {
    INK: "#e6e9ed", GREY: "#a3adb8", "#8a8a8a": "#7d8792", "#dddddd": "#38404a", "#ffffff": "#14181c",
    "#0072b2": "#4aa3df", "#d55e00": "#ff8a3d", "#009e73": "#2fd0a0", "#cc79a7": "#e08bbd", "#56b4e9": "#9ad4ff",
    "#e69f00": "#f2c14e", "#444444": "#c8ccd1", "#4a4a4a": "#c0c7cf", "#cccccc": "#414a54", "#f0f0f0": "#20262c",
    "#f2f2f2": "#20262c", "#c4c4c4": "#4a535d", "#bbbbbb": "#4a535d",
}  # fmt: skip
"""What the colours of a drawing become on a dark screen."""
MOST_DRAWN = 1_000_000
"""Bytes of a drawing; one that would be larger (a cloud of points) is left to its pixels."""
ON_CELLS = ("#fefefe", "#212121")
"""White and ink on coloured cells, which stay as they are on a dark screen."""

SEQUENTIAL = "viridis"  # even steps of lightness: order survives a grey printer
DIVERGING = "PuOr"  # safe for red-green blindness; white is the middle

_LOOK = {
    # a font that comes with matplotlib, so it is the same everywhere; 13 points are 27 pixels at 150 dpi, which is
    # still readable when the page halves the figure
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 13, "text.color": INK,
    "axes.titlesize": 14, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 9,
    "axes.labelsize": 13, "axes.labelcolor": INK, "axes.edgecolor": "#8a8a8a", "axes.linewidth": 1.0,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "axes.xmargin": 0.02,
    "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.8,
    "xtick.labelsize": 12, "xtick.color": "#8a8a8a", "xtick.labelcolor": INK,
    "ytick.labelsize": 12, "ytick.color": "#8a8a8a", "ytick.labelcolor": INK,
    "lines.linewidth": 2.2, "lines.markersize": 7, "patch.linewidth": 0.8, "hatch.linewidth": 0.9,
    "legend.frameon": False, "legend.fontsize": 12, "legend.handlelength": 2.6, "legend.columnspacing": 1.6,
    "figure.titlesize": 15, "figure.titleweight": "bold", "figure.facecolor": "white",
    "figure.constrained_layout.h_pad": 0.08, "figure.constrained_layout.w_pad": 0.08, "image.interpolation": "nearest",
}  # fmt: skip


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Run a drawing function inside the one style; the caller's matplotlib settings come back afterwards."""

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with style_context(_LOOK, after_reset=True):
            return function(*args, **kwargs)

    return inside


def colour(index: int) -> str:
    """Colour of the index-th series; series beyond the palette repeat it (marks and dashes repeat with it)."""
    return COLOURS[index % len(COLOURS)]


@styled
def panels(
    rows: int = 1, cols: int = 1, *, size: tuple[float, float] = (6.4, 4.2), title: str | None = None,
    polar: bool = False, share_x: bool = False, share_y: bool = False,
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """A figure of rows x cols panels, each `size` inches, and its axes in reading order."""
    figure = Figure(figsize=(size[0] * cols, size[1] * rows), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(
        rows, cols, squeeze=False, sharex=share_x, sharey=share_y, subplot_kw={"polar": True} if polar else {}
    )
    if title:
        figure.suptitle(title, x=0.01, ha="left")
    return figure, list(grid.flat)


@styled
def legend(target: Figure | Axes, *, columns: int | None = None) -> None:
    """Explain the series outside the data: below a figure (one entry per label) or right of one panel."""
    axes = target.axes if isinstance(target, Figure) else [target]
    entries: dict[str, Artist] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    if not entries:
        return
    handles, labels = list(entries.values()), list(entries)
    if isinstance(target, Figure):
        fit = _columns_that_fit(labels, target.get_figwidth())
        target.legend(handles, labels, loc="outside lower center", ncols=columns or fit)
    else:
        target.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), ncols=columns or 1)


@styled
def legends(*axes: Axes) -> None:
    """A legend below each panel, for panels that show different things."""
    for ax in axes:
        entries = {label: handle for handle, label in reversed(list(zip(*ax.get_legend_handles_labels())))}
        labels = list(reversed(entries))
        if not labels:  # a panel without lines, as of a training that was cut after its first iterations
            continue
        columns = _columns_that_fit(labels, ax.get_window_extent().width / ax.figure.dpi)
        handles = [entries[label] for label in labels]
        ax.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns)


def _columns_that_fit(labels: list[str], width_inches: float) -> int:
    """Legend columns for a figure width; a character is about 0.1 inch wide and a handle takes 0.8."""
    widest = max(len(label) for label in labels) * 0.1 + 0.8
    return max(1, min(len(labels), int(width_inches / widest)))


@styled
def settle(figure: Figure) -> None:
    """Repeat the layout until nothing is cut off: beside square panels one pass is not always enough."""
    for _ in range(6):
        figure.draw_without_rendering()
        if not overhang(figure) > 0.01:
            return


def overhang(figure: Figure) -> float:
    """How far, in inches, the widest part of a drawn figure reaches over its edge; 0 or less means complete."""
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    return float(max(-box.x0, -box.y0, box.x1 - width, box.y1 - height))


@styled
def save(figure: Figure, path: Path) -> Path:
    """Write `figure` as a PNG and beside it as a drawing (SVG), atomically, and empty it; the same figure always gives
    the same bytes. A figure without data is not drawn: then there is no file."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"figures are PNG files, not {path.name}")
    if figure.axes and all(ax.get_gid() == EMPTY for ax in figure.axes):
        for file in (path, path.with_suffix(".svg")):
            file.unlink(missing_ok=True)
        return path
    settle(figure)
    figure.set_layout_engine("none")  # or every drawing would lay it out again, which is most of its time
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=DPI, metadata={"Software": None})
    _save_drawing(figure, path.with_suffix(".svg"))
    figure.clear()
    return path


def _save_drawing(figure: Figure, path: Path) -> None:
    """The same figure as an SVG whose colours follow the reader's screen, light or dark."""
    buffer = io.StringIO()
    with style_context({"svg.hashsalt": path.name, "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    drawing = themed(buffer.getvalue())
    if len(drawing) > MOST_DRAWN:
        path.unlink(missing_ok=True)
    else:
        write_text(path, drawing)


def themed(drawing: str) -> str:
    """An SVG of matplotlib with the colours of the house as variables, which a dark screen sets to others."""
    names = {light.lower(): f"--c{i}" for i, light in enumerate(_IN_THE_DARK)}

    def variable(match: re.Match[str]) -> str:
        name = names.get(match[1])
        return f": var({name})" if name else match[0]

    light = ";".join(f"{name}:{colour}" for colour, name in names.items())
    dark = ";".join(f"{name}:{colour}" for name, colour in zip(names.values(), _IN_THE_DARK.values()))
    rule = f"<style>svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    coloured = re.sub(r": (#[0-9a-f]{6})(?=[;\"])", variable, drawing)
    return re.sub(r"(<svg\b[^>]*>)", lambda match: match[1] + rule, coloured, count=1)


def time_of_a_figure() -> float:
    """Seconds that one small figure takes here: what an ending with figures needs can be told from it."""
    seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):  # the first one finds fonts
            began = time.monotonic()
            figure, axes = panels(1)
            axes[0].plot([0.0, 1.0], [0.0, 1.0])
            save(figure, Path(folder) / "timed.png")
            seconds = time.monotonic() - began
    return seconds
