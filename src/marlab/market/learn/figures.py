"""Figures of offline learning: losses, errors by bucket, operators and their calibration, residuals, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import nn

from marlab.lab.report.figures import Curve, bars, curves, histogram, reliability, reliability_bins, scatter
from marlab.lab.report.heat import confusion
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Run
from marlab.market.learn.evaluate import predicted_actions
from marlab.market.learn.settings import NAMES, Phase
from marlab.market.learn.tables import DecisionTable, RoundTable
from marlab.market.logs.worldlog import REJECT
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.samples.dataset import Samples

OPERATORS = ("accept", "reject", "end")
BUCKET_NAMES = ("0-2 days", "3-7 days", "8-14 days", "15+ days")
POINTS = 4000
"""Points of a scatter plot."""


def draw_losses(run: Run, phase: Phase) -> None:
    """Training and validation loss of a phase, epoch by epoch, with the learning rate."""
    name = NAMES[phase]
    rows = [row for row in read_metrics(run.path / "metrics.jsonl") if f"{name}/epoch" in row]
    if not rows:
        return
    epoch = np.array([row[f"{name}/epoch"] for row in rows])
    figure, (loss, rate) = panels(1, 2, size=(5.6, 3.8), title=f"{name}: learning")
    lines = {
        part: Curve(epoch, np.array([row.get(f"{name}/{part}/loss", np.nan) for row in rows], dtype=float))
        for part in ("train", "val")
    }
    curves(loss, lines, xlabel="epoch", ylabel="loss", title="Loss")
    _logarithmic_if_wide(loss)
    legend(loss)
    rates = {"rate": Curve(epoch, [row[f"{name}/learning_rate"] for row in rows])}
    curves(rate, rates, xlabel="epoch", ylabel="learning rate")
    _logarithmic_if_wide(rate)
    save(figure, run.figure(f"{name}_loss.png"))


def _logarithmic_if_wide(ax: Axes) -> None:
    """A logarithmic axis where values span more than a decade; ticks of a narrow one cannot be read."""
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in ax.lines])
    seen = values[np.isfinite(values) & (values > 0)]
    if len(seen) and seen.max() > 10 * seen.min():
        ax.set_yscale("log")


def draw_phase(
    run: Run, phase: Phase, model: nn.Module, samples: Samples, found: dict[str, Any], device: torch.device
) -> None:
    """What a trained layer does on validation worlds, beside what it should do."""
    if phase == "l2":
        _draw_goals(run, found)
    elif phase == "l4":
        assert isinstance(model, GlobalCoordinator)
        _draw_weights(run, model, samples, device)
    else:
        _draw_actions(run, NAMES[phase], model, samples, found, device)


def _draw_goals(run: Run, found: dict[str, Any]) -> None:
    figure, (quantity, price) = panels(1, 2, size=(6.4, 4.2), title="L2 on validation worlds, by delivery bucket")
    for ax, part, unit in ((quantity, "Q", "units"), (price, "P", "money per unit")):
        errors = {
            "mean absolute error": [bucket[part]["mae"] for bucket in found["per_bucket"]],
            "root mean square": [bucket[part]["rmse"] for bucket in found["per_bucket"]],
        }
        title = "Quantities" if part == "Q" else "Prices"
        bars(ax, BUCKET_NAMES, errors, ylabel=f"error [{unit}]", title=title)
    legend(figure)
    save(figure, run.figure("l2_bc_buckets.png"))


def _draw_actions(
    run: Run, name: str, model: nn.Module, samples: Samples, found: dict[str, Any], device: torch.device
) -> None:
    predicted = predicted_actions(model, DecisionTable(samples, device))
    wanted = np.asarray(samples.micro["op"], np.int64)
    offered = (wanted == REJECT) & np.asarray(samples.micro["time_valid"])
    figure, (matrix, sure) = panels(1, 2, size=(5.8, 4.8), title="L3's operators on validation worlds")
    confusion(matrix, found["L3"]["confusion"], OPERATORS, title="Expert (rows) and L3 (columns)")
    data = reliability_bins(predicted["op"].max(1), predicted["op"].argmax(1) == wanted)
    reliability(sure, data, title="Calibration of the chosen operator", name="L3")
    save(figure, run.figure(f"{name}_operators.png"))

    figure, axes = panels(1, 2, size=(6.0, 4.0), title="Residuals on L1's baseline where the expert made an offer")
    expert = np.asarray(samples.micro["residual"], np.float64)[offered]
    for ax, column, what, unit in ((axes[0], 0, "Quantity", "units"), (axes[1], 1, "Price", "money per unit")):
        values = {"expert": expert[:, column], "L3": predicted["residual"][offered, column]}
        low, high = np.percentile(expert[:, column], [0.5, 99.5]) if len(expert) else (0.0, 1.0)
        bins = list(np.linspace(low - 0.5, max(high, low + 1) + 0.5, 40))
        kept = {label: np.clip(v, bins[0], bins[-1]) for label, v in values.items()}
        histogram(ax, kept, bins=bins, xlabel=f"residual [{unit}]", title=what, share=True)
    legend(figure)
    save(figure, run.figure(f"{name}_residuals.png"))


@torch.inference_mode()
def _draw_weights(run: Run, model: GlobalCoordinator, samples: Samples, device: torch.device) -> None:
    table = RoundTable(samples, device)
    chosen = np.flatnonzero(table.threads > 1)
    rng = np.random.default_rng(0)
    some = torch.from_numpy(rng.choice(chosen, min(len(chosen), 1500), replace=False)).to(device)
    if not len(some):
        return
    r = table.batch(some)
    alpha, _ = model(r.threads, r.days, r.roles, r.context, r.mask)
    teacher, student = (values[r.mask].cpu().numpy()[:POINTS] for values in (r.teacher, alpha))
    figure, [ax] = panels(size=(5.4, 5.0))
    scatter(
        ax,
        {"threads": (teacher, student)},
        xlabel="teacher's weight",
        ylabel="L4's weight",
        title="Weights of threads, validation worlds",
        identity="equal",
    )
    save(figure, run.figure("l4_distill_weights.png"))
