"""Figures of online learning: what is earned, the gain over the rule, and how far choices have moved."""

from __future__ import annotations

from typing import Any

import numpy as np

from marlab.lab.report.figures import Curve, curves
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Run

HEADS = {"op": "operator", "lot": "lot", "price": "price", "day": "day"}


def draw_learning(run: Run) -> None:
    """Gain over the rule with its interval, rewards, shares of choices that are not the rule's, and PPO's health."""
    rows = read_metrics(run.path / "metrics.jsonl")
    if not rows:
        return
    figure, axes = panels(2, 2, size=(5.8, 3.8), title="Learning online around rule W")
    gain, reward, choices, health = np.ravel(np.asarray(axes, dtype=object))
    steered = [row for row in rows if "steer/gain" in row]
    line = _compared(run, rows[-1]["step"])  # nothing was compared on the way: before and after
    if steered:
        low, high = (_column(steered, f"steer/gain_{end}") for end in ("low", "high"))
        line = Curve(_steps(steered), _column(steered, "steer/gain"), low, high)
    if line is not None:
        curves(gain, {"learner minus rule": line}, xlabel="generation", ylabel="score", title="Gain over the rule")
        gain.axhline(0.0, linewidth=0.8, color="0.5")
    day = {"a day": Curve(_steps(rows), _column(rows, "reward/day"))}
    curves(reward, day, xlabel="generation", ylabel="share of opening balance", title="Reward of a seat")
    shares = {name: Curve(_steps(rows), _column(rows, f"choices/{head}_changed")) for head, name in HEADS.items()}
    curves(choices, shares, xlabel="generation", ylabel="share", title="Choices that are not the rule's")
    legend(choices)
    parts = {name: Curve(_steps(rows), _column(rows, f"ppo/{name}")) for name in ("entropy", "explained_variance")}
    curves(health, parts, xlabel="generation", ylabel="value", title="Entropy and the critic")
    legend(health)
    save(figure, run.figure("online_learning.png"))


def _compared(run: Run, last: int) -> Curve | None:
    """Start and result beside the rule, from the results of the run."""
    names = ("start minus rule", "learner minus rule")
    if not all(name in run.results for name in names):
        return None
    found: list[Any] = [run.results[name] for name in names]
    value, low, high = (np.array([each[part] for each in found], float) for part in ("value", "low", "high"))
    return Curve(np.array([0.0, float(last)]), value, low, high)


def _steps(rows: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
    return np.array([row["step"] for row in rows], float)


def _column(rows: list[dict[str, Any]], name: str) -> np.ndarray[Any, Any]:
    return np.array([row.get(name, np.nan) for row in rows], float)
