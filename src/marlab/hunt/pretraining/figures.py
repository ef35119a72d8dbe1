"""Pictures of a pretraining of opponent models, with the original's figures and the best possible ones beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PathCollection

from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.players.published import CONFUSION, ROWS, TOP1, TOP3, VAE_LOSSES
from marlab.hunt.players.rollout import OUTCOMES
from marlab.hunt.players.seats import Kind
from marlab.lab.report.figures import Curve, Reliability, curves, reference_lines, reliability, scatter
from marlab.lab.report.heat import confusion
from marlab.lab.report.style import legend, legends, panels, save
from marlab.lab.runs.arrays import read_parquet
from marlab.lab.runs.files import trusting
from marlab.lab.runs.metrics import column, read_metrics
from marlab.lab.runs.run import Run


def draw_figures(run: Run, report: Mapping[str, Any], objective: str) -> None:
    """losses, epochs, predictions, and where they exist codes and beliefs."""
    rows, validation = read_metrics(run.path / "metrics.jsonl"), report["splits"]["validation"]
    draw_losses(run, rows, objective)
    draw_epochs(run, rows, validation["ceilings"])
    _predictions(run.figure("predictions.png"), validation)
    codes = run.path / "eval" / "codes.parquet"
    if codes.exists():
        _codes(run.figure("codes.png"), codes)
    if "belief" in report:
        _beliefs(run.figure("belief.png"), report["belief"])


def draw_losses(run: Run, rows: list[dict[str, Any]], objective: str) -> None:
    """Three panels against optimiser steps: losses, KL divergence, KL factor; the first alone without codes."""
    joined: dict[str, list[float]] = {}
    for row in rows:
        for name, values in row.get("curve", {}).items():
            joined.setdefault(name, []).extend(values)
    latent, steps = any(joined["kl"]), joined["step"]
    original = VAE_LOSSES["moa" if objective == "moa" else "recon"]
    figure, axes = panels(1, 3 if latent else 1, title="Training of the models of others")
    names = {"prediction of actions": "policy", "reconstruction": "recon", "total": "total"}
    shown = {name: Curve(steps, joined[key]) for name, key in names.items() if any(joined[key])}
    curves(axes[0], shown, xlabel="optimiser step", ylabel="loss [nats]", title="losses")
    reference_lines(axes[0], {"ln 7": float(np.log(7)), **({"original, total": original.total} if latent else {})})
    if latent:
        curves(axes[1], {"KL": Curve(steps, joined["kl"])}, xlabel="optimiser step", ylabel="KL [nats]", title="KL")
        axes[1].set_yscale("symlog", linthresh=1.0)
        axes[1].set_ylim(0.0, 3.0 * max(original.kl or 1.0, *joined["kl"]))
        reference_lines(axes[1], {} if original.kl is None else {"original": original.kl})
        weight = [1e3 * value for value in joined["kl_factor"]]
        factor = {"KL factor": Curve(steps, weight)}
        curves(axes[2], factor, xlabel="optimiser step", ylabel="weight [thousandths]", title="KL factor")
        reference_lines(axes[2], {"original": 1e3 * original.factor})
    legends(axes[0])
    save(figure, run.figure("losses.png"))


def draw_epochs(run: Run, rows: list[dict[str, Any]], ceilings: Mapping[str, Any]) -> None:
    """Top-1, top-3 and cross-entropy per epoch, with exact predictors as lines and the original's epochs."""
    figure, axes = panels(1, 3, title="Predictions of actions, held-out episodes")
    shown = (("top1", "top1", "share", TOP1), ("top3", "top3", "share", TOP3), ("ce", "cross_entropy", "nats", ()))
    for ax, (key, exact, unit, original) in zip(axes, shown):
        named = {"validation": "validation/", "training rows": "train/", "without goal": "validation/free_"}
        series = {name: Curve(*column(rows, f"moa/{prefix}{key}")) for name, prefix in named.items()}
        if original:  # a record counts the epochs that are done
            series["original, its training rows"] = Curve(range(1, len(original) + 1), original)
        curves(ax, series, xlabel="epoch", ylabel=f"{exact.replace('_', '-')} [{unit}]")
        reference_lines(ax, {f"exact, {name}": values[exact] for name, values in ceilings.items()})
    legend(figure)
    save(figure, run.figure("epochs.png"))


def _predictions(path: Path, scores: Mapping[str, Any]) -> None:
    figure, axes = panels(2, 2, size=(8.6, 6.2), title="Validation rows")
    ours = scores["moa"]["confusion"]
    names = [name.removeprefix("hunt ") for name in ACTION_NAMES]
    confusion(axes[0], ours, names[: len(ours)], title="true (rows) and predicted (columns)")
    confusion(axes[1], CONFUSION, names, title=f"original, its {ROWS:,} training rows")
    for ax, key, title in ((axes[2], "moa", "calibration given the goal"), (axes[3], "free", "without goal")):
        bins = scores[key]["reliability"].items()
        known = {k: np.array([np.nan if v is None else v for v in values]) for k, values in bins}
        reliability(ax, Reliability(**known, error=scores[key]["ece"]), title=title)
    legends(axes[2])
    save(figure, path)


def _codes(path: Path, codes: Path) -> None:
    with trusting(f"{codes} does not hold codes"):
        table = read_parquet(codes).to_pydict()
    data = {name: np.asarray(values) for name, values in table.items() if name != "code"}
    late = data["t"] >= 2  # before that nobody has shown much
    figure, axes = panels(1, 2, size=(6.0, 5.6), title="Codes of validation rows from t = 2 on")
    by_type = {kind.name: data["type"] == kind for kind in (Kind.NS, Kind.NH, Kind.RAND)}
    by_outcome = {name: data["outcome"] == number for number, name in enumerate(OUTCOMES)}
    for ax, groups, title in zip(axes, (by_type, by_outcome), ("by type", "by outcome")):
        series = {n: (data["x"][late & m], data["y"][late & m]) for n, m in groups.items() if (late & m).any()}
        scatter(ax, series, xlabel="first component", ylabel="second component", title=title)
        legend(ax)
        shown = ax.get_legend()
        for handle in shown.legend_handles if shown else ():
            if isinstance(handle, PathCollection):  # thousands of points are drawn too small and pale for a legend
                handle.set(sizes=[60], alpha=1)
    save(figure, path)


def _beliefs(path: Path, belief: Mapping[str, Any]) -> None:
    figure, (left, right) = panels(1, 2, title="Belief in the true type")
    steps = {name: Curve(range(len(v["true_type_by_step"])), v["true_type_by_step"]) for name, v in belief.items()}
    curves(left, steps, xlabel="step", ylabel="probability", title="within an episode")
    series = {}
    for name, values in belief.items():
        for key, label in (("prior_by_episode", "discount 0.9"), ("prior_by_episode_slow", "discount 0.995")):
            series[f"{name}, {label}"] = Curve(range(len(values[key])), values[key])
    curves(right, series, xlabel="episode", ylabel="probability", title="before the first step of an episode")
    legend(figure)
    save(figure, path)
