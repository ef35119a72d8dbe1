"""Pictures of a pretraining of the models of others, from its metrics and its final figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq

from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.players.rollout import OUTCOMES
from marlab.lab.report.figures import Curve, Reliability, curves, reference_lines, reliability, scatter
from marlab.lab.report.heat import confusion
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.metrics import column, read_metrics
from marlab.lab.runs.run import Run

TYPE_NAMES = {0: "NS", 1: "NH", 2: "RAND"}


def draw_figures(run: Run, report: dict[str, Any]) -> None:
    """losses, epochs, confusion, calibration, and where they exist codes and beliefs."""
    rows = read_metrics(run.path / "metrics.jsonl")
    _losses(run, rows)
    _epochs(run, rows, report)
    _predictions(run, report)
    if (run.path / "eval" / "codes.parquet").exists():
        _codes(run)
    if "belief" in report:
        _beliefs(run, report["belief"])


def _losses(run: Run, rows: list[dict[str, Any]]) -> None:
    """Three panels against optimiser steps: losses, KL divergence, KL factor."""
    joined: dict[str, list[float]] = {}
    for row in rows:
        for name, values in row.get("curve", {}).items():
            joined.setdefault(name, []).extend(values)
    figure, (left, middle, right) = panels(1, 3, title="Training of the models of others")
    steps = joined["step"]
    shown = {"prediction of actions": "policy", "reconstruction": "recon", "total": "total"}
    lines = {name: Curve(steps, joined[key]) for name, key in shown.items()}
    curves(left, lines, xlabel="optimiser step", ylabel="loss [nats]", title="losses")
    curves(middle, {"KL": Curve(steps, joined["kl"])}, xlabel="optimiser step", ylabel="KL [nats]", title="KL")
    middle.set_yscale("symlog", linthresh=1.0)
    middle.set_ylim(bottom=0.0)
    factor = {"KL factor": Curve(steps, joined["kl_factor"])}
    curves(right, factor, xlabel="optimiser step", ylabel="weight", title="KL factor")
    legend(figure)
    save(figure, run.figure("losses.png"))


def _epochs(run: Run, rows: list[dict[str, Any]], report: dict[str, Any]) -> None:
    """Top-1, top-3 and cross-entropy per epoch with the exact predictors as lines."""
    figure, axes = panels(1, 3, title="Predictions of actions, held-out episodes")
    best = report["splits"]["validation"]["ceilings"]
    for ax, (key, exact, unit) in zip(
        axes, (("top1", "top1", "share"), ("top3", "top3", "share"), ("ce", "cross_entropy", "nats"))
    ):
        series = {}
        for name, prefix in (("validation", "moa/validation/"), ("training rows", "moa/train/")):
            series[name] = Curve(*column(rows, prefix + key))
        series["without goal"] = Curve(*column(rows, f"moa/validation/free_{key}"))
        curves(ax, series, xlabel="epoch", ylabel=f"{exact.replace('_', '-')} [{unit}]")
        reference_lines(ax, {f"exact, {name}": values[exact] for name, values in best.items()})
    legend(figure)
    save(figure, run.figure("epochs.png"))


def _predictions(run: Run, report: dict[str, Any]) -> None:
    moa = report["splits"]["validation"]["moa"]
    names = [name.removeprefix("hunt ") for name in ACTION_NAMES[: len(moa["confusion"])]]
    figure, (left, right) = panels(1, 2, size=(7.6, 6.0), title="Validation rows")
    confusion(left, moa["confusion"], names, title="true (rows) and predicted (columns)")
    bins = {k: np.array([np.nan if v is None else v for v in values]) for k, values in moa["reliability"].items()}
    reliability(right, Reliability(**bins, error=moa["ece"]), title="calibration of the best guess")
    legend(figure)
    save(figure, run.figure("predictions.png"))


def _codes(run: Run) -> None:
    table = pq.read_table(run.path / "eval" / "codes.parquet").to_pydict()
    data = {name: np.asarray(values) for name, values in table.items() if name != "code"}
    late = data["t"] >= 2  # before that nobody has shown much
    figure, (left, right) = panels(1, 2, size=(6.0, 5.6), title="Codes of validation rows from t = 2 on")
    by_type = {name: data["type"] == number for number, name in TYPE_NAMES.items()}
    by_outcome = {name: data["outcome"] == number for number, name in enumerate(OUTCOMES)}
    for ax, groups, title in ((left, by_type, "by type"), (right, by_outcome, "by outcome")):
        series = {n: (data["x"][late & m], data["y"][late & m]) for n, m in groups.items() if (late & m).any()}
        scatter(ax, series, xlabel="first component", ylabel="second component", title=title)
        legend(ax)
    save(figure, run.figure("codes.png"))


def _beliefs(run: Run, belief: dict[str, Any]) -> None:
    figure, (left, right) = panels(1, 2, title="Belief in the true type")
    steps = {name: belief[name]["true_type_by_step"] for name in belief}
    curves(left, {k: Curve(range(len(v)), v) for k, v in steps.items()}, xlabel="step", ylabel="probability",
           title="within an episode")  # fmt: skip
    series = {}
    for name, values in belief.items():
        for key, label in (("prior_by_episode", "discount 0.9"), ("prior_by_episode_slow", "discount 0.995")):
            series[f"{name}, {label}"] = Curve(range(len(values[key])), values[key])
    curves(right, series, xlabel="episode", ylabel="probability", title="before the first step of an episode")
    legend(figure)
    save(figure, run.figure("belief.png"))
