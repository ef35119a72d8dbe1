"""What a set of samples holds, in numbers and pictures. Memory stays small: tables are read in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from marlab.lab.report import figures
from marlab.lab.report.style import legend, panels, save
from marlab.market.logs.worldlog import REJECT
from marlab.market.samples.dataset import Samples

OPERATORS = ("accept", "reject", "end")
QUANTILES = (0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 0.99)
PIECE = 1 << 18
"""Rows read at a time."""
MOST = 1 << 20
"""Rows that quantiles are computed from; of larger tables every n-th row is taken."""
SOURCES = ("recorded", "computed")


def describe(samples: Samples) -> dict[str, Any]:
    """Counts, shares and scales of one split."""
    micro, rows = samples.micro, samples.rows("micro")
    ops, masked, length, projected, invalid, breaks = np.zeros(3, np.int64), 0, 0, 0, 0, 0
    sources, per_round = np.zeros(len(SOURCES), np.int64), np.zeros((3, 21), np.int64)
    for piece in _pieces(rows):
        op = micro["op"][piece]
        rejects = op == REJECT
        ops += np.bincount(op, minlength=3)
        masked += int(micro["masked"][piece].sum())
        length += int(np.minimum(micro["history_length"][piece], 20).sum())
        projected += int((rejects & (micro["time_shift"][piece] > 0)).sum())
        invalid += int((rejects & ~micro["time_valid"][piece]).sum())
        breaks += int(micro["breaks_caps"][piece].sum())
        sources += np.bincount(micro["source"][piece], minlength=len(SOURCES))
        np.add.at(per_round, (op, np.minimum(micro["round"][piece], 20)), 1)
    return {
        "logs": len(samples.logs), "worlds": len({log.world for log in samples.logs}),
        "macro": samples.rows("macro"), "micro": rows, "calls": samples.rows("calls"), "offers": samples.rows("offers"),
        "ops": dict(zip(OPERATORS, ops.tolist())), "all_masked": masked,
        "mean_history": length / rows if rows else None,
        "mean_threads": rows / samples.rows("calls") if rows else None,
        "time_projected": projected, "time_invalid": invalid, "breaks_caps": breaks,
        "baseline_source": dict(zip(SOURCES, sources.tolist())),
        "ops_per_round": {name: counts.tolist() for name, counts in zip(OPERATORS, per_round)},
        **_scales(samples),
    }  # fmt: skip


def _pieces(rows: int) -> Iterator[slice]:
    return (slice(start, start + PIECE) for start in range(0, rows, PIECE))


def _some(rows: int) -> slice:
    return slice(None, None, max(1, -(-rows // MOST)))


def _scales(samples: Samples) -> dict[str, Any]:
    """Quantiles of the expert's offers, of their distance to the baseline, of goals and of rewards."""
    micro, some = samples.micro, _some(samples.rows("micro"))
    rejects = micro["op"][some] == REJECT
    residual, baseline = micro["residual"][some][rejects], micro["baseline"][some][rejects]
    offers = residual + baseline[:, :2]
    days = _some(samples.rows("macro"))
    label, reward = samples.macro["label"][days], samples.macro["reward"][days]
    return {
        "quantity": quantiles(offers[:, 0]),
        "price": quantiles(offers[:, 1]),
        "residual_quantity": quantiles(residual[:, 0]),
        "residual_price": quantiles(residual[:, 1]),
        "day": quantiles(micro["time_label"][some][rejects & micro["time_valid"][some]]),
        "goal_quantity": quantiles(label[:, ::2].ravel()),
        "goal_price": quantiles(label[:, 1::2].ravel()),
        "reward": quantiles(reward[np.isfinite(reward)]),
        "goal_zero_share": float((samples.macro["goal"][days] == 0).all(1).mean()) if len(label) else None,
    }


def quantiles(values: NDArray[Any]) -> dict[str, float | int]:
    """n, mean, std, min, p01 ... p99, max; only n where there are no values."""
    if not len(values):
        return {"n": 0}
    points = np.quantile(values, QUANTILES)
    scale = {"mean": float(values.mean(dtype=np.float64)), "std": float(values.std(dtype=np.float64))}
    scale["min"] = float(values.min())
    scale |= {f"p{round(100 * q):02d}": float(value) for q, value in zip(QUANTILES, points)}
    return {"n": len(values), **scale, "max": float(values.max())}


def table(stats: Mapping[str, Mapping[str, Any]]) -> str:
    """The statistics of all splits side by side, as text."""
    lines = [f"{'':<28}" + "".join(f"{split:>14}" for split in stats)]

    def line(name: str, values: list[Any], digits: int = 0) -> None:
        shown = ("-" if v is None else f"{v:,.{digits}f}" for v in values)
        lines.append(f"{name:<28}" + "".join(f"{text:>14}" for text in shown))

    splits = list(stats.values())
    for name in ("worlds", "logs", "macro", "micro", "calls"):
        line(name, [s[name] for s in splits])
    for name in OPERATORS:
        line(f"op {name}", [s["ops"][name] for s in splits])
    names = {
        "all_masked": "time mask all closed",
        "time_projected": "time labels projected",
        "time_invalid": "time labels not used",
        "breaks_caps": "actions beyond the caps",
    }
    for key, name in names.items():
        line(name, [s[key] for s in splits])
    line("mean history length", [s["mean_history"] for s in splits], 2)
    line("mean threads per call", [s["mean_threads"] for s in splits], 2)
    for name in SOURCES:
        line(f"baseline {name}", [s["baseline_source"][name] for s in splits])
    for name in ("quantity", "price", "residual_quantity", "residual_price"):
        for key in (f"p{round(100 * q):02d}" for q in QUANTILES):
            line(f"{name.replace('_', ' ')} {key}", [s[name].get(key) for s in splits], 2)
    return "\n".join(lines)


def draw(samples: Samples, stats: Mapping[str, Any], folder: Path) -> list[Path]:
    """Figures of one split: residuals, operators per round, goals per bucket."""
    if not samples.rows("micro"):
        return []
    return [_residuals(samples, folder), _operators(stats, folder), _goals(samples, folder)]


def _residuals(samples: Samples, folder: Path) -> Path:
    micro, some = samples.micro, _some(samples.rows("micro"))
    rejects = micro["op"][some] == REJECT
    residual, role = micro["residual"][some][rejects], micro["role"][some][rejects]
    figure, axes = panels(2, 2)
    for place, ax in enumerate(axes):
        side, column = divmod(place, 2)
        values = residual[role == side, column]
        low, high = np.quantile(values, [0.005, 0.995]) if len(values) else (0, 0)  # a few wild offers hide the rest
        inside = values[(values >= low) & (values <= high)]
        figures.histogram(
            ax, {"offers": inside}, bins=40, xlabel=f"expert minus baseline: {('units', 'price per unit')[column]}",
            ylabel="share of offers", title=("buying", "selling")[side], share=True,
        )  # fmt: skip
    return save(figure, folder / "residuals.png")


def _operators(stats: Mapping[str, Any], folder: Path) -> Path:
    counts = np.array([stats["ops_per_round"][name] for name in OPERATORS], float)  # [3, rounds]
    last = int(np.flatnonzero(counts.sum(0)).max()) + 1
    counts = counts[:, :last]
    shares = counts / np.maximum(counts.sum(0), 1)
    figure, axes = panels(1, 2)
    seen = np.where(counts > 0, counts, np.nan)
    for ax, values, name in zip(axes, (shares, seen), ("share of decisions", "decisions")):
        lines = {word: figures.Curve(np.arange(last), line) for word, line in zip(OPERATORS, values)}
        figures.curves(ax, lines, xlabel="round", ylabel=name)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[1].set_yscale("log")
    legend(figure)
    return save(figure, folder / "operators.png")


def _goals(samples: Samples, folder: Path) -> Path:
    days = _some(samples.rows("macro"))
    label, role = samples.macro["label"][days].reshape(-1, 4, 2, 2), samples.macro["x_role"][days]
    buckets = ("0-2", "3-7", "8-14", "15+")
    figure, axes = panels(1, 2)
    for ax, kind, name in zip(axes, (0, 1), ("quantity [units a day]", "price per unit")):
        sides = {}
        for side, word in enumerate(("buying", "selling")):
            there = label[role[:, side] > 0, :, side, kind]
            if len(there):
                sides[word] = there.mean(0).tolist()
        figures.bars(ax, buckets, sides, xlabel="days to delivery", ylabel=f"mean goal: {name}")
    legend(figure)
    return save(figure, folder / "goals.png")
