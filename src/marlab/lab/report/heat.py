"""Heat maps with numbers, and confusion matrices.

R rows, C columns, K classes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike, NDArray

from marlab.lab.report.style import DIVERGING, ON_CELLS, SEQUENTIAL, styled
from marlab.lab.stats import written

MOST_NUMBERS = 400  # cells beyond which numbers are too small to read and colour alone remains


@styled
def heat_map(
    ax: Axes, values: ArrayLike, *, xlabel: str, ylabel: str, title: str | None = None,
    rows: Sequence[str] | None = None, columns: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None, centre: float | None = None, digits: int = 2, bar: str | None = None,
    extent: tuple[float, float, float, float] | None = None, square: bool = False,
) -> AxesImage:  # fmt: skip
    """Cells [R, C] as colour and number, row 0 on top; NaN cells are hatched. `bar` labels a colour bar.

    `centre` chooses the diverging colours, white at that value, for signed quantities. `extent` (left, right,
    bottom, top) makes it a map over two measured quantities instead: row 0 at the bottom, axes in their units,
    colours only. `square` keeps cells square.
    """
    grid = np.asarray(values, dtype=float)
    image = ax.imshow(
        np.ma.masked_invalid(grid), norm=_norm(grid, limits, centre), extent=extent, aspect="auto",
        cmap=SEQUENTIAL if centre is None else DIVERGING, origin="upper" if extent is None else "lower",
    )  # fmt: skip
    if square:
        ax.set_box_aspect(grid.shape[0] / grid.shape[1])
    _empty_cells(ax)
    if extent is None:
        _cell_frame(ax, grid.shape, rows, columns)
        _cell_numbers(ax, image, [[written(v, digits) if np.isfinite(v) else "" for v in line] for line in grid])
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if title:
        ax.set_title(title)
    if bar is not None:
        _colour_bar(ax, image, bar)
    return image


def _colour_bar(ax: Axes, image: AxesImage, told: str) -> None:
    """A bar whose label is broken into lines of about half the height of the figure."""
    letters = max(8, int(ax.figure.bbox.height / ax.figure.dpi / 0.19))
    ax.figure.colorbar(image, ax=ax, label=textwrap.fill(told, letters), shrink=0.9)


@styled
def confusion(ax: Axes, counts: ArrayLike, classes: Sequence[str], *, title: str | None = None) -> AxesImage:
    """Confusion matrix [K true, K predicted]: colour and first line are the share of the true class, then the count."""
    grid = np.asarray(counts, dtype=float)
    if grid.shape != (len(classes), len(classes)):
        raise ValueError(f"a confusion matrix of {len(classes)} classes cannot have shape {grid.shape}")
    total = grid.sum(axis=1, keepdims=True)
    share = np.divide(grid, total, out=np.full_like(grid, np.nan), where=total > 0)
    image = ax.imshow(np.ma.masked_invalid(share), norm=Normalize(0.0, 1.0), cmap="Blues", aspect="auto")
    names = [f"{name} ({_count(n)})" for name, n in zip(classes, total[:, 0])]
    _empty_cells(ax)
    _cell_frame(ax, grid.shape, names, classes)
    texts = [
        [f"{part:.2f}\n{_count(n)}" if np.isfinite(part) else "" for part, n in zip(parts, numbers)]
        for parts, numbers in zip(share, grid)
    ]
    _cell_numbers(ax, image, texts)
    ax.set(xlabel="predicted class", ylabel="true class (count)")
    if title:
        ax.set_title(title)
    _colour_bar(ax, image, "share of the true class")
    return image


def _count(number: float) -> str:
    return f"{int(number):,}".replace(",", " ")


def _norm(grid: NDArray[Any], limits: tuple[float, float] | None, centre: float | None) -> Normalize:
    finite = grid[np.isfinite(grid)]
    low, high = limits or ((float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0))
    if centre is not None:
        reach = max(high - centre, centre - low) or 1.0
        return TwoSlopeNorm(centre, centre - reach, centre + reach)
    return Normalize(low, high if high > low else low + 1.0)


def _empty_cells(ax: Axes) -> None:
    """Hatch the background: it shows where a cell has no value."""
    ax.grid(visible=False)
    ax.set_facecolor("#f2f2f2")
    ax.patch.set(hatch="////", edgecolor="#c4c4c4", linewidth=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _cell_frame(ax: Axes, shape: tuple[int, ...], rows: Sequence[str] | None, columns: Sequence[str] | None) -> None:
    """Ticks in the middle of cells and white lines between them."""
    for names, length, put in ((rows, shape[0], ax.set_yticks), (columns, shape[1], ax.set_xticks)):
        shown = range(0, length, 1 if names is not None else max(1, length // 10))
        put(list(shown), [str(names[i]) if names is not None else str(i) for i in shown])
    if columns is not None and sum(len(str(c)) for c in columns) > 9 * ax.get_window_extent().width / ax.figure.dpi:
        ax.tick_params(axis="x", labelrotation=40)
        for text in ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    if shape[0] * shape[1] <= MOST_NUMBERS:
        ax.set_xticks(np.arange(-0.5, shape[1]), minor=True)
        ax.set_yticks(np.arange(-0.5, shape[0]), minor=True)
        ax.grid(visible=True, which="minor", color="white", linewidth=1.4)
        ax.tick_params(which="minor", length=0)
        ax.set_axisbelow(False)


def _cell_numbers(ax: Axes, image: AxesImage, texts: list[list[str]]) -> None:
    """Write into the cells, dark on light and light on dark, as large as the cells allow."""
    n_rows, n_cols = len(texts), len(texts[0]) if texts else 0
    if not 0 < n_rows * n_cols <= MOST_NUMBERS:
        return
    lines = [part for line in texts for text in line for part in text.split("\n")]
    tall = max(text.count("\n") + 1 for line in texts for text in line)
    box = ax.get_window_extent()
    wide_pt, high_pt = (edge / ax.figure.dpi * 72 * 0.8 for edge in (box.width / n_cols, box.height / n_rows))
    longest = max((len(part) for part in lines), default=1) or 1
    size = float(np.clip(min(0.95 * wide_pt / (0.62 * longest), 0.7 * high_pt / (1.25 * tall)), 5.0, 12.5))
    shades = np.asarray(image.to_rgba(np.ma.asarray(image.get_array())))  # [R, C, 4]
    for r, line in enumerate(texts):
        for c, text in enumerate(line):
            dark = _luminance(shades[r, c]) < 0.22  # where white and ink contrast equally well
            ax.text(c, r, text, ha="center", va="center", fontsize=size, color=ON_CELLS[0] if dark else ON_CELLS[1])


def _luminance(rgba: NDArray[Any]) -> float:
    """Relative luminance of a colour, 0 black to 1 white, as the eye weighs it."""
    linear = np.where(rgba[:3] <= 0.04045, rgba[:3] / 12.92, ((rgba[:3] + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))
