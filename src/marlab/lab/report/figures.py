"""Drawing helpers: each puts one kind of data on one panel, with its units, in the one style.

Panels come from `style.panels`, leave through `style.save`. Every helper asks for axis labels because a figure
without units cannot be read; write them as "survival [share]". A panel without data says so in small letters.
Letters: S seeds or repetitions, T points of a curve, G groups of bars, R x C cells, K classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import EngFormatter
from numpy.typing import ArrayLike, NDArray

from marlab.lab.report.style import DASHES, EMPTY, GREY, HATCHES, INK, MARKERS, colour, styled
from marlab.lab.stats import Measured, mean_interval, written

__all__ = [
    "Curve", "bars", "curves", "histogram", "label", "moving_mean", "polar_histogram", "reference_lines",
    "reliability", "reliability_bins", "scatter",
]  # fmt: skip

Number = float | int
FEWEST = 4
"""Below this many repetitions Student's interval of a curve is too wide to read (12.7 standard errors for two), so the
band shows what was seen, from the lowest to the highest."""


class Curve(NamedTuple):
    """One line: `y` is [T], or [S, T] to be drawn as the mean over S with its 95 % interval (the range, of a few).

    `low` and `high` [T] give the band directly, for data whose interval is already known.
    """

    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None


@styled
def label(ax: Axes, x: str, y: str, title: str | None = None) -> None:
    """Name both axes with their units."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if title:
        ax.set_title(title)


@styled
def curves(
    ax: Axes, series: Mapping[str, Curve], *, xlabel: str, ylabel: str, title: str | None = None, smooth: int = 1,
    repeats: str = "seeds",
) -> None:  # fmt: skip
    """Lines with intervals. `smooth` > 1 draws moving means of that many points over the faint original.

    The legend says how many `repeats` a mean is over and whether it was smoothed.
    """
    label(ax, xlabel, ylabel, title)
    drawn = [_curve(ax, i, name, line, smooth, repeats) for i, (name, line) in enumerate(series.items())]
    if not any(drawn):
        _no_data(ax)
        return
    if max(abs(edge) for edge in ax.get_xlim()) >= 1e4 and ax.get_xscale() == "linear":
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))  # 250k, 1M


def _curve(ax: Axes, index: int, name: str, line: Curve, smooth: int, repeats: str) -> bool:
    x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
    if y.shape[-1:] != x.shape:
        raise ValueError(f"curve '{name}': x has {x.shape[0]} points, y has shape {y.shape}")
    if not np.isfinite(y).any():
        return False
    raw = mean_interval(y)[0] if y.ndim == 2 else y
    few = y.ndim == 2 and len(y) < FEWEST
    facts = [f"{len(y)} {repeats}, {'range' if few else '95 % band'}"] if y.ndim == 2 and len(y) > 1 else []
    if smooth > 1:
        y = np.apply_along_axis(moving_mean, -1, y, smooth)
        ax.plot(x, raw, color=colour(index), linewidth=1.0, alpha=0.35)
        facts.append(f"moving mean of {smooth}")
    middle, low, high = mean_interval(y) if y.ndim == 2 else (y, line.low, line.high)
    if few and len(y) > 1:
        seen = np.isfinite(y).any(0)
        low, high = (np.where(seen, edge(np.where(np.isfinite(y), y, raw), 0), np.nan) for edge in (np.min, np.max))
    if low is not None and high is not None:
        ax.fill_between(x, low, high, color=colour(index), alpha=0.18, linewidth=0)
    name = f"{name} ({', '.join(facts)})" if facts else name
    every = max(1, len(x) // 8)
    ax.plot(
        x, middle, label=name, color=colour(index), linestyle=DASHES[index % len(DASHES)],
        marker=MARKERS[index % len(MARKERS)], markevery=(index * every // 4 % every, every), markeredgecolor="white",
    )  # fmt: skip
    return True


def moving_mean(values: ArrayLike, window: int) -> NDArray[Any]:
    """Centred mean over `window` points, over fewer at the ends; NaN points do not count."""
    y = np.asarray(values, dtype=float)
    present = np.isfinite(y)
    kernel = np.ones(window)
    padded = np.pad(np.where(present, y, 0.0), (window // 2, window - 1 - window // 2))
    counts = np.pad(present.astype(float), (window // 2, window - 1 - window // 2))
    total, count = np.convolve(padded, kernel, "valid"), np.convolve(counts, kernel, "valid")
    return np.divide(total, count, out=np.full_like(y, np.nan), where=count > 0)


@styled
def bars(
    ax: Axes, groups: Sequence[str], series: Mapping[str, Sequence[Measured | Number | None]], *, ylabel: str,
    xlabel: str = "", title: str | None = None, digits: int = 2,
) -> None:  # fmt: skip
    """Grouped bars with intervals and the values written above them; a missing value leaves its place empty."""
    width = 0.84 / max(1, len(series))
    bar_inches = ax.get_window_extent().width / ax.figure.dpi * width / max(1, len(groups))
    size = float(np.clip(17.0 * bar_inches, 8, 12))  # four characters fit over a bar
    for i, (name, values) in enumerate(series.items()):
        found = [v if isinstance(v, Measured) else Measured(v) for v in values]
        if len(found) != len(groups):
            raise ValueError(f"bars '{name}': {len(found)} values for {len(groups)} groups")
        centres = np.arange(len(groups)) + (i - (len(series) - 1) / 2) * width
        shade: dict[str, Any] = {"color": colour(i), "edgecolor": "white", "hatch": HATCHES[i % len(HATCHES)]}
        heights = [m.number if m.number is not None else np.nan for m in found]
        ax.bar(centres, heights, width * 0.94, label=name if len(series) > 1 else None, **shade)
        for centre, value in zip(centres, found):
            _bar_text(ax, float(centre), value, digits, size)
    ax.set_xticks(range(len(groups)), groups)
    ax.grid(visible=False, axis="x")
    ax.axhline(0.0, color="#8a8a8a", linewidth=1.0)
    ax.margins(y=0.12)
    ax.set_xlim(-0.5, len(groups) - 0.5)
    label(ax, xlabel, ylabel, title)


def _bar_text(ax: Axes, centre: float, value: Measured, digits: int, size: float) -> None:
    number = value.number
    if number is None:
        ax.annotate("no data", (centre, 0), (0, 4), textcoords="offset points", ha="center", va="bottom",
                    rotation=90, fontsize=size, color=GREY)  # fmt: skip
        return
    top = bottom = number
    if value.low is not None and value.high is not None:
        ax.vlines(centre, value.low, value.high, color=INK, linewidth=1.6)
        ax.plot([centre, centre], [value.low, value.high], linestyle="none", marker="_", color=INK, markersize=8)
        top, bottom = max(number, value.high), min(number, value.low)
    up = number >= 0
    ax.annotate(written(number, digits), (centre, top if up else bottom), (0, 5 if up else -5),
                textcoords="offset points", ha="center", va="bottom" if up else "top", fontsize=size,
                path_effects=[withStroke(linewidth=3, foreground="white")])  # fmt: skip


@styled
def histogram(
    ax: Axes, series: Mapping[str, ArrayLike], *, bins: int | Sequence[float] = 30, xlabel: str,
    ylabel: str | None = None, title: str | None = None, stacked: bool = False, share: bool = False,
) -> None:  # fmt: skip
    """Histograms over common bins, stacked or laid over each other; `share` makes each sum to 1."""
    label(ax, xlabel, ylabel or ("share" if share else "count"), title)
    data = {name: np.asarray(v, dtype=float)[np.isfinite(np.asarray(v, dtype=float))] for name, v in series.items()}
    data = {name: values for name, values in data.items() if values.size}
    if not data:
        _no_data(ax)
        return
    edges = np.histogram_bin_edges(np.concatenate(list(data.values())), bins)
    below = np.zeros(len(edges) - 1)
    for i, (name, values) in enumerate(data.items()):
        counts = np.histogram(values, edges)[0].astype(float)
        heights = counts / values.size if share else counts
        if stacked:
            look: dict[str, Any] = {"color": colour(i), "edgecolor": "white", "hatch": HATCHES[i % len(HATCHES)]}
            ax.bar(edges[:-1], heights, np.diff(edges), bottom=below, align="edge", label=name, **look)
            below = below + heights
        else:
            outline: dict[str, Any] = {"edgecolor": colour(i), "linewidth": 2.0, "linestyle": DASHES[i % len(DASHES)]}
            face = (*_rgb(colour(i)), 0.22)
            ax.stairs(heights, edges, fill=True, facecolor=face, label=name, **outline)
    ax.set_ylim(bottom=0)


@styled
def scatter(
    ax: Axes, series: Mapping[str, tuple[ArrayLike, ArrayLike]], *, xlabel: str, ylabel: str,
    title: str | None = None, identity: str | None = None,
) -> None:  # fmt: skip
    """Points per series; `identity` names a diagonal where both axes are equal (a prediction that is right)."""
    label(ax, xlabel, ylabel, title)
    total = sum(np.size(x) for x, _ in series.values())
    if not total:
        _no_data(ax)
        return
    size, alpha = (46, 0.85) if total <= 200 else (18, 0.5) if total <= 2000 else (7, 0.3)
    for i, (name, (x, y)) in enumerate(series.items()):
        ax.scatter(x, y, s=size, alpha=alpha, color=colour(i), marker=MARKERS[i % len(MARKERS)], linewidths=0,
                   label=name)  # fmt: skip
    if identity is not None:
        low = min(ax.get_xlim()[0], ax.get_ylim()[0])
        high = max(ax.get_xlim()[1], ax.get_ylim()[1])
        ax.plot([low, high], [low, high], color=GREY, linewidth=1.4, linestyle=(0, (4, 3)), label=identity, zorder=1)
        ax.set(xlim=(low, high), ylim=(low, high))
        ax.set_box_aspect(1)


@dataclass(frozen=True)
class Reliability:
    """Predicted against observed frequency; arrays are [bins], NaN where a bin is empty."""

    edges: NDArray[Any]  # [bins + 1]
    confidence: NDArray[Any]
    accuracy: NDArray[Any]
    count: NDArray[Any]
    error: float  # expected calibration error: mean |accuracy - confidence| weighted by count


def reliability_bins(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> Reliability:
    """Sort predictions [N] with confidence in [0, 1] into equal bins and compare with what came true [N]."""
    p, hit = np.asarray(confidence, dtype=float), np.asarray(correct, dtype=float)
    if p.shape != hit.shape or p.ndim != 1:
        raise ValueError(f"confidence {p.shape} and correct {hit.shape} must be two lists of one length")
    if p.size and not (np.all(p >= 0) and np.all(p <= 1)):
        raise ValueError("confidence must lie between 0 and 1")
    place = np.minimum((p * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)

    def mean(values: NDArray[Any]) -> NDArray[Any]:
        total = np.bincount(place, weights=values, minlength=bins)
        return np.divide(total, count, out=np.full(bins, np.nan), where=count > 0)

    sure, right = mean(p), mean(hit)
    error = float(np.nansum(np.abs(right - sure) * count) / p.size) if p.size else float("nan")
    return Reliability(np.linspace(0.0, 1.0, bins + 1), sure, right, count, error)


@styled
def reliability(ax: Axes, data: Reliability, *, title: str | None = None, name: str = "model") -> None:
    """Reliability diagram: on the diagonal a prediction of 70 % comes true 70 % of the time."""
    label(ax, "predicted probability [share]", "came true [share]", title)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set_box_aspect(1)
    filled = data.count > 0
    if not filled.any():
        _no_data(ax)
        return
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1.4, linestyle=(0, (4, 3)), label="perfectly calibrated")
    x, y, n = data.confidence[filled], data.accuracy[filled], data.count[filled]
    ax.vlines(x, np.minimum(x, y), np.maximum(x, y), color=colour(1), linewidth=2.2, label="gap")
    told = f"{name}, calibration error {data.error:.3f} (area: count)"
    ax.plot(x, y, color=colour(0), label=told, marker="o")
    ax.scatter(x, y, s=30 + 220 * n / n.max(), color=colour(0), edgecolor="white", zorder=3, clip_on=False)


@styled
def polar_histogram(
    ax: Axes, series: Mapping[str, ArrayLike], *, bins: int = 12, title: str | None = None, unit: str = "count"
) -> None:
    """Stacked histogram of headings in radians on a polar panel; 0 is east (+x), angles run counter-clockwise."""
    if not isinstance(ax, PolarAxes):
        raise ValueError("polar_histogram needs a polar panel: panels(polar=True)")
    edges = np.linspace(0.0, 2 * np.pi, bins + 1)
    below = np.zeros(bins)
    for i, (name, angles) in enumerate(series.items()):
        turned = np.mod(np.asarray(angles, dtype=float), 2 * np.pi)
        counts = np.histogram(turned[np.isfinite(turned)], edges)[0]
        ax.bar(edges[:-1], counts, np.diff(edges), bottom=below, align="edge", color=colour(i), edgecolor="white",
               hatch=HATCHES[i % len(HATCHES)], label=name)  # fmt: skip
        below = below + counts
    ax.set_xticks(np.linspace(0, 2 * np.pi, 8, endpoint=False), [f"{degrees}°" for degrees in range(0, 360, 45)])
    ax.tick_params(axis="x", pad=8)
    ax.set_xlabel("0° is east (+x), counter-clockwise", color=GREY)
    ax.grid(color="#cccccc")
    if not below.any():
        ax.set_yticks([])
        _no_data(ax)
    else:
        rings = _nice_rings(float(below.max()))
        ax.set_yticks(rings, [f"{r:g}" for r in rings], color=INK)
        ax.set_rlabel_position(22.5)
    ax.set_title(f"{title or ''}{' ' if title else ''}[{unit} per {360 / bins:g}°]", loc="left")


def _nice_rings(top: float) -> list[float]:
    step = 10 ** np.floor(np.log10(top / 2))
    step = next(step * k for k in (1, 2, 5, 10) if top / (step * k) <= 3.5)
    return [float(step * k) for k in range(1, int(top / step) + 1)]


@styled
def reference_lines(ax: Axes, lines: Mapping[str, float]) -> None:
    """Horizontal lines for baselines and ceilings, named in the right margin; call it after the data is drawn.

    Names that would overlap are moved apart; each stays connected to its line.
    """
    for value in lines.values():
        ax.axhline(value, color=GREY, linewidth=1.3, linestyle=(0, (4, 3)), zorder=1)
    low, high = ax.get_ylim()
    to_share = ax.transData + ax.transAxes.inverted()
    share = {name: float(to_share.transform((ax.get_xlim()[0], value))[1]) for name, value in lines.items()}
    gap = 0.30 / max(0.1, ax.get_window_extent().height / ax.figure.dpi)  # a line of text is 0.2 inch high
    places = _spread([share[name] for name in lines], gap)
    for name, place in zip(lines, places):
        ax.annotate(
            f"{name} {lines[name]:.3g}", (1.0, share[name]), (1.035, place), xycoords="axes fraction",
            textcoords="axes fraction", va="center", ha="left", fontsize=11.5, color="#4a4a4a", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
    ax.set_ylim(low, high)


def _spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions close to the wanted ones, in the same order, at least `gap` apart.

    Neighbours that are too close become a block, which is centred on what its members wanted.
    """

    def bottom(block: list[int]) -> float:
        return float(np.mean([wanted[i] for i in block])) - (len(block) - 1) / 2 * gap

    blocks: list[list[int]] = []
    for index in np.argsort(wanted, kind="stable").tolist():
        blocks.append([index])
        while len(blocks) > 1 and bottom(blocks[-1]) - bottom(blocks[-2]) < len(blocks[-2]) * gap:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    placed = [0.0] * len(wanted)
    for block in blocks:
        for rank, index in enumerate(block):
            placed[index] = bottom(block) + rank * gap
    return placed


def _no_data(ax: Axes) -> None:
    """An empty panel of a figure; one whose panels are all empty is not drawn at all (`style.save`)."""
    ax.set_gid(EMPTY)
    ax.grid(visible=False)
    ax.tick_params(length=0, labelcolor="none")
    ax.text(0.02, 0.98, "no data", transform=ax.transAxes, ha="left", va="top", color=GREY, fontsize=11)


def _rgb(name: str) -> tuple[float, float, float]:
    red, green, blue = (int(name[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
