"""The figures of a fish run, from iteration rows, probe records and plain arrays.

A row is one iteration of `metrics`: a mapping with `iteration` and the names of the training statistics; a value that
is missing or None is a gap. `references` maps the scripted policies and the ceiling to their average survival: they
are drawn as named lines wherever survival is drawn. Every function returns the file it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from marlab.fish.measure.config import SPEED_CLASSES
from marlab.fish.sea.constants import EPISODE_STEPS
from marlab.fish.starts.clusters import headings
from marlab.lab.report.figures import Curve, bars, curves, label, polar_histogram, reference_lines
from marlab.lab.report.style import GREY, INK, colour, legend, panels, save, settle, styled
from marlab.lab.runs.files import replacing
from marlab.lab.stats import Measured, share_interval

Row = Mapping[str, Any]
Rows = Sequence[Row]
References = Mapping[str, float]


class TrainingReferences(NamedTuple):
    """Scripted policies after as many steps as the episodes of a training have."""

    lines: References
    steps: int


ITERATION = "iteration"
WIDE = (10.0, 4.4)
DEATH_BIN = 25  # steps
OVERRIDE_AIM = 0.25
GIF_FRAMES = 30


def column(rows: Rows, name: str) -> NDArray[np.float64]:
    """One value per row [T], NaN where it is missing."""
    values = [row.get(name) for row in rows]
    return np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64)


def _curve(rows: Rows, name: str) -> Curve:
    """The known points only, so that values that come every few iterations are still joined by a line."""
    x, y = column(rows, ITERATION), column(rows, name)
    known = np.isfinite(y)
    return Curve(x[known], y[known]) if known.any() else Curve(x, y)


# --- training -----------------------------------------------------------------------------------------------


def plot_survival(rows: Rows, path: Path, references: TrainingReferences) -> Path:
    """Survival of the training episodes beside the scripted policies and the ceiling."""
    figure, (ax,) = panels(size=WIDE)
    _draw_survival(ax, rows, references)
    return save(figure, path)


def _draw_survival(ax: Axes, rows: Rows, references: TrainingReferences) -> None:
    line = _curve(rows, "survival_rate")
    title = f"Survival after {references.steps} steps in training, exploration included"
    curves(ax, {"survival": line}, xlabel=ITERATION, ylabel="survival [share of fish]", title=title)
    _mark_phases(ax, rows)
    _survival_axis(ax, [line.y], references.lines)


def plot_first_death(rows: Rows, path: Path) -> Path:
    """When the first fish of an episode dies: on average, and in the unluckiest tenth of the episodes."""
    figure, (ax,) = panels(size=WIDE)
    _draw_first_death(ax, rows)
    return save(figure, path)


def _draw_first_death(ax: Axes, rows: Rows, named: bool = True) -> None:
    series = {
        "mean over episodes": _curve(rows, "first_death_step"),
        "10th percentile over episodes": _curve(rows, "first_death_p10"),
        "10th percentile, without step one": _curve(rows, "late_first_death_p10"),
    }
    series = {name: line for name, line in series.items() if np.isfinite(np.asarray(line.y, dtype=float)).any()}
    curves(ax, series, xlabel=ITERATION, ylabel="first death [step]", title="First death, in episodes that have one")
    ax.set_ylim(bottom=0)
    _mark_phases(ax, rows, named)
    _explain(ax, "best")


def plot_penalty_vs_first_death(rows: Rows, path: Path) -> Path:
    """The density penalty above the first deaths, on one time axis."""
    return _stacked(rows, path, lambda ax, rows: _draw_first_death(ax, rows, named=False))


def plot_penalty_vs_entropy(rows: Rows, path: Path) -> Path:
    """The density penalty above the entropy weight, on one time axis."""

    def draw(ax: Axes, rows: Rows) -> None:
        _steps(ax, rows, "entropy_coef", 1)
        label(ax, ITERATION, "coefficient", "Entropy bonus")
        _mark_phases(ax, rows, named=False)

    return _stacked(rows, path, draw)


def _stacked(rows: Rows, path: Path, lower: Callable[[Axes, Rows], None]) -> Path:
    figure, (top, bottom) = panels(2, 1, size=(10.0, 3.3), share_x=True)
    _steps(top, rows, "density_penalty_coef", 0)
    label(top, "", "coefficient", "Density penalty")
    _mark_phases(top, rows)
    lower(bottom, rows)
    return save(figure, path)


@styled
def _steps(ax: Axes, rows: Rows, name: str, index: int) -> None:
    """A setting that holds for a whole iteration."""
    values = column(rows, name)
    ax.step(column(rows, ITERATION), values, where="mid", color=colour(index))
    known = values[np.isfinite(values)]
    ax.set_ylim(0, 1.15 * float(known.max()) if known.any() else 1.0)


@styled
def _explain(ax: Axes, place: Literal["best", "lower right"]) -> None:
    """Name the lines inside their own panel: panels of one figure repeat the colours."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc=place, frameon=True, facecolor="white", edgecolor="none", framealpha=0.8, fontsize=11)


def plot_training_curve(rows: Rows, path: Path, references: TrainingReferences) -> Path:
    """Survival, reward, length and first death at one glance."""
    figure, (survival, reward, length, death) = panels(2, 2, size=(7.4, 3.9))
    _draw_survival(survival, rows, references)
    series = {"reward": _curve(rows, "avg_reward")}
    curves(reward, series, xlabel=ITERATION, ylabel="return [per fish and episode]", title="Reward")
    _mark_phases(reward, rows)
    series = {"length": _curve(rows, "episode_length")}
    curves(length, series, xlabel=ITERATION, ylabel="length [steps]", title="Episode length")
    length.set_ylim(0, EPISODE_STEPS * 1.08)
    _mark_phases(length, rows)
    _draw_first_death(death, rows)
    return save(figure, path)


def plot_hard_starts(rows: Rows, path: Path) -> Path:
    """How many resets used a hard start, how much of the stock is left, and which stage is on."""
    figure, (ratio, stock) = panels(2, 1, size=(10.0, 3.3), share_x=True)
    series = {"share of the last 256 resets": _curve(rows, "prewarm_override_ratio_256")}
    curves(ratio, series, xlabel="", ylabel="hard starts [share]", title="Resets that used a hard start")
    ratio.set_ylim(0, 1.05)
    reference_lines(ratio, {"aim": OVERRIDE_AIM})
    _mark_phases(ratio, rows)
    series = {"stock left": _curve(rows, "tail_queue_remaining_ratio")}
    curves(stock, series, xlabel=ITERATION, ylabel="stock [share]", title="Stock of hard starts")
    stock.set_ylim(0, 1.05)
    _mark_stages(stock, rows)
    return save(figure, path)


@styled
def _mark_stages(ax: Axes, rows: Rows) -> None:
    """Shade every other stage of hard starts and write its name at the bottom, where it fits."""
    iterations, names = column(rows, ITERATION), [str(row.get("tail_stage_label") or "") for row in rows]
    starts = [i for i, name in enumerate(names) if name and (i == 0 or names[i - 1] != name)]
    per_inch = len(rows) / 8.0  # iterations per inch of a wide panel
    for rank, first in enumerate(starts):
        end = starts[rank + 1] if rank + 1 < len(starts) else len(rows)
        left, right = iterations[first] - 0.5, iterations[end - 1] + 0.5
        if rank % 2 == 0:
            ax.axvspan(left, right, color="#f0f0f0", zorder=0)
        if (right - left) / per_inch > 0.1 * len(names[first]):
            ax.text((left + right) / 2, 0.03, names[first].replace("_", " "), transform=ax.get_xaxis_transform(),
                    ha="center", va="bottom", fontsize=11, color=GREY)  # fmt: skip
    ax.set_xlim(iterations[0] - 0.5, iterations[-1] + 0.5)


@styled
def _mark_phases(ax: Axes, rows: Rows, named: bool = True) -> None:
    """A thin line where a phase begins, with its number of fish; the axis covers all iterations."""
    iterations, fish, phase = column(rows, ITERATION), column(rows, "num_fish"), column(rows, "phase")
    ax.set_xlim(iterations[0] - 0.5, iterations[-1] + 0.5)
    for i in np.flatnonzero(np.diff(phase, prepend=np.nan) != 0) if np.isfinite(phase).all() else []:
        if i:
            ax.axvline(iterations[i] - 0.5, color="#bbbbbb", linewidth=1.0, zorder=0)
        if named and (i == 0 or fish[i] != fish[i - 1]):
            ax.text(iterations[i] - 0.3, 1.0, f"{fish[i]:.0f} fish", transform=ax.get_xaxis_transform(), va="bottom",
                    ha="left", fontsize=11, color=GREY)  # fmt: skip
    if named:
        ax.set_title(ax.get_title(loc="left"), loc="left", pad=22)


def _survival_axis(ax: Axes, data: Sequence[ArrayLike], references: References) -> None:
    """Show the data and every reference, up to 1."""
    values = np.concatenate([np.asarray(d, dtype=float).ravel() for d in data] + [np.array(list(references.values()))])
    values = values[np.isfinite(values)]
    low = float(values.min()) if len(values) else 0.0
    ax.set_ylim(max(0.0, low - 0.06), 1.02)
    if references:
        reference_lines(ax, dict(sorted(references.items(), key=lambda item: item[1])))


# --- probes -------------------------------------------------------------------------------------------------


def plot_probe_timeline(probes: Sequence[Mapping[str, Any]], path: Path, references: References) -> Path:
    """What the probes saw: survival, early and step-one deaths, and what the gate made of it."""
    figure, (survival, deaths) = panels(2, 1, size=(10.0, 4.2), share_x=True)
    x = np.array([p["iteration"] for p in probes], dtype=float)

    def line(*keys: str) -> Curve:
        return Curve(x, np.array([_dig(p, keys) for p in probes], dtype=float))

    seen = {
        "average over episodes": line("summary", "avg_final_survival_rate"),
        "worst episode": line("summary", "min_final_survival_rate"),
    }
    curves(survival, seen, xlabel="", ylabel="survival [share of fish]", title="Probes: survival after 500 steps")
    _survival_axis(survival, [c.y for c in seen.values()], references)
    _mark_gate(survival, probes)
    _explain(survival, "lower right")
    lost = {
        "dead before step 100": line("death_stats", "early_death_fraction_100"),
        "dead at step one": line("step_one_death_ratio"),
        "doomed at step one": line("doomed_ratio"),
    }
    lost = {name: curve for name, curve in lost.items() if np.isfinite(np.asarray(curve.y)).any()}
    curves(deaths, lost, xlabel=ITERATION, ylabel="deaths [share of fish]", title="Probes: early deaths")
    deaths.set_ylim(bottom=0)
    _explain(deaths, "best")  # late probes may be unlucky, so no corner is always free
    return save(figure, path)


def _dig(record: Mapping[str, Any], keys: Sequence[str]) -> float:
    value: Any = record
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return np.nan if value is None else float(value)


@styled
def _mark_gate(ax: Axes, probes: Sequence[Mapping[str, Any]]) -> None:
    """The gate's stage over each probe, with an arrow where it moved."""
    signs = {"advance": "▲", "rollback": "▼", "failure_hold": "x", "locked": "·", "frozen": "·"}
    for probe in probes:
        gate = probe.get("penalty_gate")
        if gate:
            text = f"{signs.get(gate['event'], '')}{gate['stage']}"
            ax.text(probe["iteration"], 1.0, text, transform=ax.get_xaxis_transform(), ha="center", va="bottom",
                    fontsize=11, color=INK if gate["event"] in ("advance", "rollback") else GREY)  # fmt: skip
    if any(p.get("penalty_gate") for p in probes):
        ax.set_title(ax.get_title(loc="left"), loc="left", pad=22)
        ax.annotate("gate stage: ▲ up, ▼ down, x failed", (1.0, 1.0), (0, 24), xycoords="axes fraction",
                    textcoords="offset points", ha="right", va="bottom", fontsize=11, color=GREY)  # fmt: skip


def plot_step_one_polar(velocity: ArrayLike, path: Path, title: str = "Step-one deaths by heading") -> Path:
    """Headings of the predator where fish died at the first step [R, 2], stacked by its speed."""
    angle, speed = headings(velocity)
    series = {name: np.radians(angle[(speed >= low) & (speed < high)]) for name, (low, high) in SPEED_CLASSES.items()}
    figure, (ax,) = panels(size=(7.2, 6.4), polar=True)
    polar_histogram(ax, series, title=title)
    legend(figure)
    return save(figure, path)


def plot_death_histogram(death_steps: ArrayLike, path: Path, title: str = "When fish die") -> Path:
    """Deaths per 25 steps [E, N], step-one deaths apart; survivors are told in the title."""
    steps = np.asarray(death_steps).ravel()
    died = steps[steps > 0]
    figure, (ax,) = panels(size=WIDE)
    _draw_deaths(ax, died)
    survivors = f"{len(steps) - len(died)} of {len(steps)} fish survive"
    label(ax, "step of death", f"deaths per {DEATH_BIN} steps", f"{title}: {survivors}")
    legend(figure)
    return save(figure, path)


@styled
def _draw_deaths(ax: Axes, died: NDArray[Any]) -> None:
    edges = np.arange(0, EPISODE_STEPS + 1, DEATH_BIN)
    first = float((died == 1).sum())
    later = np.histogram(died[died > 1] - 0.5, edges)[0].astype(float)  # steps 1 to 25 form the first bin
    ones = np.zeros_like(later)
    ones[0] = first
    look: dict[str, Any] = {"width": DEATH_BIN, "align": "edge", "edgecolor": "white"}
    ax.bar(edges[:-1], ones, color=colour(1), hatch="///", label="at step one", **look)
    ax.bar(edges[:-1], later, bottom=ones, color=colour(0), label="later", **look)
    ax.set_xticks(range(0, EPISODE_STEPS + 1, 50))
    ax.set_xlim(0, EPISODE_STEPS)
    ax.set_ylim(0, max(1.0, 1.1 * float((ones + later).max())))


def plot_step_one_by_type(summary: Mapping[str, Mapping[str, Any]], path: Path) -> Path:
    """Step-one deaths per fish by the type of start (see `probe_stats.step_one_by_type`), with 95 % intervals."""
    figure, (ax,) = panels(size=(7.2, 4.2))
    names = [f"{kind}\n({s['fish']} fish)" for kind, s in summary.items()]
    shares = [_percent(s["count"], s["fish"]) for s in summary.values()]
    bars(ax, names, {"deaths": shares}, ylabel="dead at step one [% of fish]", title="Step-one deaths by start")
    return save(figure, path)


def _percent(count: int, fish: int) -> Measured:
    if not fish:
        return Measured(None)
    share, low, high = share_interval(count, fish)
    return Measured(100 * share, 100 * low, 100 * high)


# --- moving ---------------------------------------------------------------------------------------------------


def save_curve_gif(rows: Rows, path: Path, references: TrainingReferences, frames: int = GIF_FRAMES) -> Path:
    """The survival curve as it grew, as a GIF that pauses on its last frame: the whole figure is drawn once, and once
    without its curve; a frame shows the first as far as the training had come."""
    from PIL import Image

    whole, bare, edges = _with_and_without_curve(rows, references)
    shown = np.arange(whole.shape[1])[:, None]
    ends = np.unique(np.linspace(1, len(rows), min(frames, len(rows))).round().astype(int))
    palette = Image.fromarray(whole).quantize(32)
    images = [Image.fromarray(np.where(shown <= edges[end - 1], whole, bare)).quantize(palette=palette) for end in ends]
    with replacing(path) as temporary:
        times = [120] * (len(images) - 1) + [2500]  # milliseconds
        images[0].save(temporary, format="GIF", save_all=True, append_images=images[1:], duration=times, loop=0)
    return path


@styled
def _with_and_without_curve(
    rows: Rows, references: TrainingReferences
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float64]]:
    """Two pictures [H, W, 3], and the column at which each row's point stands; the last one's is the right edge."""
    figure, (ax,) = panels(size=(8.0, 4.2))
    line = _curve(rows, "survival_rate")
    curves(ax, {"survival": line}, xlabel=ITERATION, ylabel="survival [share of fish]", title="Survival in training")
    drawn = [*ax.lines, *ax.collections]
    _mark_phases(ax, rows)
    _survival_axis(ax, [line.y], references.lines)
    figure.set_dpi(90)
    settle(figure)
    figure.set_layout_engine("none")
    whole = _pixels(figure)
    for part in drawn:
        part.set_visible(False)
    bare = _pixels(figure)
    iterations = column(rows, ITERATION)
    edges = ax.transData.transform(np.stack([iterations, np.zeros_like(iterations)], 1))[:, 0] + 5  # a whole mark
    edges[-1] = whole.shape[1]
    return whole, bare, edges


def _pixels(figure: Figure) -> NDArray[np.uint8]:
    canvas: Any = figure.canvas
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


# --- all of a run -------------------------------------------------------------------------------------------


def draw_run(
    rows: Rows, probes: Sequence[Mapping[str, Any]], folder: Path, references: References, training: TrainingReferences,
    stop: Callable[[], bool] = lambda: False,
) -> list[Path]:  # fmt: skip
    """Every figure that the rows and probes of the run in `folder` allow, each called after it, and the curve's GIF.

    The most telling ones come first; `stop` is asked before each.
    """
    name = folder.name

    def file(figure: str) -> Path:
        return folder / "figures" / f"{name}_{figure}.png"

    velocity = [r["predator_velocity"] for p in probes for r in p.get("step_one_deaths", [])]
    todo: list[Callable[[], Path]] = [
        lambda: plot_survival(rows, file("survival"), training),
        lambda: plot_training_curve(rows, file("training_curve"), training),
    ]
    if probes:
        todo.append(lambda: plot_probe_timeline(probes, file("multi_eval_timeline"), references))
    todo.append(lambda: plot_first_death(rows, file("first_death")))
    if any(row.get("density_penalty_coef") for row in rows):
        todo.append(lambda: plot_penalty_vs_first_death(rows, file("penalty_vs_first_death")))
        todo.append(lambda: plot_penalty_vs_entropy(rows, file("penalty_vs_entropy")))
    if any(row.get("tail_stage_label") for row in rows):
        todo.append(lambda: plot_hard_starts(rows, file("hard_starts")))
    if probes:
        todo.append(lambda: plot_step_one_polar(velocity, file("step_one_heading_polar")))
    todo.append(lambda: save_curve_gif(rows, folder / "media" / f"{name}_curve.gif", training))
    made = []
    for draw in todo:
        if stop():
            break
        made.append(draw())
    return made
