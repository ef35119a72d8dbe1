"""Diagnosis of models of others while agents learn: every pair of observer and other over the iterations.

A pair's scores alone mislead: an almost random player is badly predicted by the best model too. So its own
randomness, the floor, stands beside the cross-entropy wherever the run knows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.hunt.diagnose.parts import Picture, Section, Table, save_picture
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.players.published import ONLINE_BROKEN
from marlab.lab.errors import UserError
from marlab.lab.report.figures import Curve, curves, label
from marlab.lab.report.style import legend, panels
from marlab.lab.runs.metrics import read_metrics

TAG = re.compile(r"seed_(\d+)/moa/(\d+)->(\d+)/(\S+)")
SCORES = {"acc_top1": "top-1", "acc_top3": "top-3", "ce_loss": "cross-entropy", "floor": "floor", "excess": "excess"}
LAST_SHARE = 0.1
"""Part of the training, at its end, over which a pair is summed up."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class PairRun:
    """The recorded scores of a run whose agents model each other."""

    name: str
    steps: NDArray[Any]  # [T]
    scores: dict[Pair, dict[str, NDArray[np.float64]]]  # by pair (players from 1) and score: [S, T], NaN where absent

    @property
    def observers(self) -> list[int]:
        return sorted({i for i, _ in self.scores})

    def over_pairs(self, score: str) -> NDArray[np.float64]:
        """[S, T] mean over all pairs that have the score, NaN where none has."""
        lines = [named[score] for named in self.scores.values() if score in named]
        if not lines:
            return np.full((1, len(self.steps)), np.nan)
        return over_seeds(np.stack(lines))


def open_pair_run(path: Path, name: str) -> PairRun:
    """Read the scores of every pair and seed from a run's metrics; a run without any has no pairs."""
    rows = read_metrics(path / "metrics.jsonl")
    if not rows:
        raise UserError(f"{path} has no metrics to diagnose: its metrics.jsonl is missing or empty.")
    by_pair: dict[Pair, dict[str, dict[int, NDArray[np.float64]]]] = {}
    for t, row in enumerate(rows):
        for key, value in row.items():
            tag = TAG.fullmatch(key)
            if tag is None or not isinstance(value, int | float):
                continue
            seed, pair, score = int(tag[1]), (int(tag[2]), int(tag[3])), tag[4]
            lines = by_pair.setdefault(pair, {}).setdefault(score, {})
            lines.setdefault(seed, np.full(len(rows), np.nan))[t] = value
    seeds = sorted({seed for named in by_pair.values() for lines in named.values() for seed in lines})
    never = np.full(len(rows), np.nan)
    scores = {pair: {k: np.stack([lines.get(seed, never) for seed in seeds]) for k, lines in named.items()}
              for pair, named in sorted(by_pair.items())}  # fmt: skip
    return PairRun(name, np.array([row["step"] for row in rows]), scores)


def diagnose_pairs(run: PairRun, out: Path | None) -> Section:
    """The pairs at the end of training beside the original's, and pictures in `out`."""
    section = Section(f"Models of others in training, {run.name}")
    if not run.scores:
        section.remarks.append("This run has no models of others: nothing was recorded about pairs.")
        return section
    last = max(1, round(LAST_SHARE * len(run.steps)))
    rows: list[tuple[Any, ...]] = []
    for (i, j), named in run.scores.items():
        rows.append((f"{i} -> {j}", *(_end(named.get(key), last) for key in SCORES)))
    original = tuple(f"{low:g} to {high:g}" for low, high in ONLINE_BROKEN.values())
    rows.append(("original, before its buffer was mended", *original, None, None))
    header = ("observer -> other", *SCORES.values())
    section.tables.append(Table(f"Every pair, mean over seeds and the last {last} iterations", header, rows))
    section.figures["pairs"] = {
        f"{i}->{j}": {k: _end(v, last) for k, v in s.items()} for (i, j), s in run.scores.items()
    }
    if out is not None:
        section.pictures += [_draw_scores(run, out), _draw_classes(run, out)]
    return section


def _end(lines: NDArray[np.float64] | None, last: int) -> float | None:
    """Mean of the last iterations over seeds [S, T]; None without any figure."""
    if lines is None or not np.isfinite(lines[:, -last:]).any():
        return None
    return float(np.nanmean(lines[:, -last:]))


def over_seeds(lines: NDArray[np.float64]) -> NDArray[np.float64]:
    """[...] mean over the first axis of what is known, NaN where nothing is."""
    known = np.isfinite(lines)
    return np.where(known.any(0), np.nansum(lines, 0) / np.maximum(known.sum(0), 1), np.nan)


def _mean(lines: NDArray[np.float64] | None, length: int) -> NDArray[np.float64]:
    """[T] mean over seeds; NaN where the score was never recorded."""
    return np.full(length, np.nan) if lines is None else over_seeds(lines)


def _draw_scores(run: PairRun, out: Path) -> Picture:
    """A column per observer, a row per score, a line per other player."""
    shown = ("acc_top1", "acc_top3", "ce_loss")
    observers = run.observers
    figure, axes = panels(len(shown), len(observers), size=(4.4, 3.0), title="Predictions of every other player")
    others = sorted({j for _, j in run.scores})
    for row, score in enumerate(shown):
        for column, i in enumerate(observers):
            ax = axes[row * len(observers) + column]
            lines = {f"about player {j}": Curve(run.steps, _mean(run.scores.get((i, j), {}).get(score), len(run.steps)))
                     for j in others}  # fmt: skip
            if score == "ce_loss":
                floors = [_mean(s.get("floor"), len(run.steps)) for (a, _), s in run.scores.items() if a == i]
                lines["floor, mean of the others"] = Curve(run.steps, _mean(np.stack(floors), len(run.steps)))
            curves(ax, lines, xlabel="", ylabel="")
            label(ax, "iteration" if row == len(shown) - 1 else "", SCORES[score] if column == 0 else "",
                  f"observer {i}" if row == 0 else None)  # fmt: skip
            ax.set_ylim(0, 1 if score != "ce_loss" else None)
    legend(figure)
    return save_picture(figure, out, f"pairs-{run.name}.png", "Top-1, top-3 and cross-entropy of every pair")


def _draw_classes(run: PairRun, out: Path) -> Picture:
    """A panel per pair, a line per action."""
    observers = run.observers
    wide = max(sum(1 for i, _ in run.scores if i == observer) for observer in observers)
    figure, axes = panels(len(observers), wide, size=(4.4, 2.6), title="Recall of every action, by pair")
    actions = range(len(ACTION_NAMES))
    for ax, ((i, j), named) in zip(axes, run.scores.items()):
        lines = {ACTION_NAMES[a]: Curve(run.steps, _mean(named.get(f"per_class_acc/{a}"), len(run.steps)))
                 for a in actions}  # fmt: skip
        edges = "iteration" if i == observers[-1] else "", "recall" if ax in axes[::wide] else ""
        curves(ax, lines, xlabel=edges[0], ylabel=edges[1], title=f"{i} about {j}")
        ax.set_ylim(0, 1.03)
    legend(figure)
    return save_picture(figure, out, f"pair-recall-{run.name}.png", "Recall of every action for every pair")
