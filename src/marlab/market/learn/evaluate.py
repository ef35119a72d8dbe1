"""How good the learnt layers are on samples they did not see, beside predictors that learnt nothing.

Errors are in raw units (units of goods, money per unit). Intervals come from resampling whole worlds: decisions of
one world are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from torch import nn

from marlab.lab.config import from_dict
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_table
from marlab.lab.stats import ratio_interval
from marlab.market.learn.command import EvalL2Config, MarketTrainConfig
from marlab.market.learn.tables import DayTable, DecisionTable, RoundTable, rule_operators
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.losses import weight_loss
from marlab.market.networks.manager import HorizonManagerPPO, find_manager
from marlab.market.networks.weights import load_manager
from marlab.market.rules.goals import GAP, GOAL_SIZE, IS_QUANTITY, IS_SELLING, SPREAD
from marlab.market.samples.dataset import HISTORY, Samples, open_dataset
from marlab.market.samples.goals import check_network

Floats = NDArray[np.float64]
BATCH = 4096
"""Rows that a network sees at a time."""


# --- L2 -----------------------------------------------------------------------------------------------------------


def goal_errors(predicted: Floats, target: Floats, roles: Floats) -> dict[str, dict[str, float]]:
    """MAE, RMSE, mean target and mean relative error of Q and P, over components the factory can trade on: [N, 16]."""
    allowed = np.where(IS_SELLING, roles[:, 1:], roles[:, :1]) > 0
    errors = {}
    for name, chosen in (("Q", IS_QUANTITY), ("P", ~IS_QUANTITY)):
        mask = allowed & chosen
        error, wanted = np.abs(predicted - target)[mask], np.abs(target[mask])
        if not len(error):
            errors[name] = dict.fromkeys(("mae", "rmse", "mean_target", "mean_rel_err"), float("nan"))
            continue
        errors[name] = {
            "mae": float(error.mean()),
            "rmse": float(np.sqrt((error**2).mean())),
            "mean_target": float(target[mask].mean()),
            "mean_rel_err": float((error / np.maximum(wanted, 1)).mean()),
        }
    return errors


@torch.inference_mode()
def predicted_goals(model: HorizonManagerPPO, table: DayTable) -> Floats:
    """[N, 16] goals as they are used: nothing negative."""
    model.eval()
    parts = []
    for index in torch.arange(table.rows, device=table.device).split(BATCH):
        days = table.batch(index)
        parts.append(model(days.x_static, days.x_temporal, days.x_role)[0].clamp_min(0).cpu())
    return torch.cat(parts).double().numpy() if parts else np.zeros((0, GOAL_SIZE))


def trivial_goals(samples: Samples) -> dict[str, Floats]:
    """Goals that need no learning: nothing at the trading price, and only the open needs (which the label contains)."""
    static, roles = np.asarray(samples.macro["x_static"], np.float64), np.asarray(samples.macro["x_role"], np.float64)
    spot_in, spot_out = static[:, 6] * 50, static[:, 7] * 50
    zero = np.zeros((len(static), GOAL_SIZE))
    zero[:, 1::4], zero[:, 3::4] = 0.95 * spot_in[:, None], 1.05 * spot_out[:, None]
    gap = zero.copy()
    needs = np.asarray(samples.macro["needs"], np.float64)  # [N, 2]
    gap[:, IS_QUANTITY] = (GAP * SPREAD[None, :, None] * needs[:, None, :]).reshape(len(needs), -1)
    allowed = np.where(IS_SELLING, roles[:, 1:], roles[:, :1])
    return {"zero and spot": zero * allowed, "gap only": gap * allowed}


def evaluate_goals(model: HorizonManagerPPO, samples: Samples, device: torch.device) -> dict[str, Any]:
    """Errors of L2 and of the trivial goals, each with an interval of its RMSE, and L2's errors per bucket."""
    table = DayTable(samples, device)
    target, roles = np.asarray(samples.macro["label"], np.float64), np.asarray(samples.macro["x_role"], np.float64)
    worlds = world_numbers(samples)[samples.macro["log"]]
    report: dict[str, Any] = {"days": samples.rows("macro")}
    candidates = {"L2": predicted_goals(model, table), **trivial_goals(samples)}
    for name, goal in candidates.items():
        errors = goal_errors(goal, target, roles)
        allowed = np.where(IS_SELLING, roles[:, 1:], roles[:, :1]) > 0
        for part, chosen in (("Q", IS_QUANTITY), ("P", ~IS_QUANTITY)):
            mask = allowed & chosen
            squares = np.where(mask, (goal - target) ** 2, 0).sum(1)
            errors[part]["rmse_interval"] = _interval(  # type: ignore[assignment]
                worlds, lambda s, n: np.sqrt(s / np.maximum(n, 1)), squares, mask.sum(1)
            )
        report[name] = errors
    report["per_bucket"] = [
        goal_errors(_bucket(candidates["L2"], b), _bucket(target, b), roles) for b in range(GOAL_SIZE // 4)
    ]
    return report


def _bucket(goal: Floats, bucket: int) -> Floats:
    """A goal in which every bucket shows one bucket's numbers; errors over it are errors of that bucket."""
    return np.tile(goal[:, 4 * bucket : 4 * bucket + 4], (1, GOAL_SIZE // 4))


def eval_l2(config: EvalL2Config) -> dict[str, Any]:
    """`marlab market eval-l2`: the report of `evaluate_goals`; what does not fit together is refused."""
    if config.run == Path():
        raise UserError("Say which L2 to judge: the run directory of `marlab market train`.")
    path, device = find_manager(config.run), choose_device(config.device)
    dataset = open_dataset(config.data or _data_of(config.run))
    model = load_manager(path, device)
    check_network(path, model, dataset.sizes, dataset.options)
    samples = dataset.split(config.split)
    if not samples.rows("macro"):
        raise UserError(f"The split '{config.split}' of {dataset.folder} has no days.")
    return evaluate_goals(model, samples, device)


def _data_of(run: Path) -> Path:
    if not (run / "config.json").is_file():
        raise UserError(f"{run} is not a run directory, so say which samples to judge on with --data.")
    stored = read_table(run / "config.json", lambda why: UserError(f"The run cannot be read: {why}."))
    return from_dict(MarketTrainConfig, stored, f"{run / 'config.json'}").data


def show(report: dict[str, Any], split: str) -> None:
    """Print the errors of L2 as two tables, of quantities and of prices."""
    console = Console()
    for part, unit in (("Q", "units"), ("P", "money per unit")):
        name = "Quantities" if part == "Q" else "Prices"
        table = Table(title=f"{name} ({unit}), {split}, {report['days']:,} days", box=SIMPLE, padding=(0, 1))
        for column in ("", "MAE", "RMSE", "95 % interval", "mean target", "rel. error"):
            table.add_column(column, justify="left" if not column else "right", no_wrap=True)
        for row in ("L2", "zero and spot", "gap only"):
            e = report[row][part]
            low, high = e["rmse_interval"]
            spread = "one world" if low is None else f"[{low:.3f}, {high:.3f}]"
            table.add_row(row, f"{e['mae']:.3f}", f"{e['rmse']:.3f}", spread,
                          f"{e['mean_target']:.3f}", f"{e['mean_rel_err']:.4f}")  # fmt: skip
        console.print(table)


# --- L3 -----------------------------------------------------------------------------------------------------------


@torch.inference_mode()
def predicted_actions(model: nn.Module, table: DecisionTable) -> dict[str, NDArray[Any]]:
    """What L3 would do at each decision: op probabilities [N, 3], residual [N, 2], day [N]."""
    model.eval()
    parts: dict[str, list[NDArray[Any]]] = {"op": [], "residual": [], "day": []}
    for index in torch.arange(table.rows, device=table.device).split(BATCH):
        output = model(table.batch(index, HISTORY).inputs)
        parts["op"].append(output.op_logits.softmax(1).cpu().numpy())
        parts["residual"].append(output.residual.float().cpu().numpy())
        parts["day"].append(output.time_logits.argmax(1).cpu().numpy())
    return {name: np.concatenate(values) for name, values in parts.items()}


def trivial_actions(samples: Samples, majority_op: int) -> dict[str, dict[str, NDArray[Any]]]:
    """Actions that need no learning, as op [N], residual [N, 2] and day [N].

    "copy" repeats the agent's own last offer in the negotiation (the baseline before the first one), "baseline" is
    L1's, both with the operator of the acceptance rule; "majority" always does what is most common in training.
    """
    micro = samples.micro
    rows = len(micro["op"])
    rule = rule_operators(samples)
    base, day = np.asarray(micro["baseline"], np.float64), np.asarray(micro["baseline"][:, 2], np.int64)
    own, has = _own_last(samples)
    copied = np.where(has[:, None], own[:, :2] - base[:, :2], 0.0)
    zeros = np.zeros((rows, 2))
    return {
        "copy": {"op": rule, "residual": copied, "day": np.where(has, own[:, 2], day).astype(np.int64)},
        "baseline": {"op": rule, "residual": zeros, "day": day},
        "majority": {"op": np.full(rows, majority_op), "residual": zeros, "day": day},
    }


def _own_last(samples: Samples) -> tuple[Floats, NDArray[np.bool_]]:
    """The agent's last own offer in the negotiation of each decision [N, 4], and whether there is one [N]."""
    micro, offers = samples.micro, samples.tables["offers"]["row"]
    end = (micro["history"] + micro["history_length"]).astype(np.int64)
    if not len(offers):
        return np.zeros((len(end), 4)), np.zeros(len(end), bool)
    mine = offers[:, 3] > 0
    last = np.maximum.accumulate(np.where(mine, np.arange(len(offers)), -1))  # last own offer up to each row
    at = np.where(micro["history_length"] > 0, last[np.maximum(end - 1, 0)], -1)
    has = at >= micro["history"]
    return np.asarray(offers[np.where(has, at, 0)], np.float64), has & (micro["history_length"] > 0)


def action_report(samples: Samples, op: NDArray[Any], residual: Floats, day: NDArray[Any]) -> dict[str, Any]:
    """Operators (confusion, recall), and errors of quantity, price and day where the expert made an offer.

    Recall of a class is the share of the expert's decisions of that class that are found; `recall` is their mean.
    """
    micro = samples.micro
    wanted = np.asarray(micro["op"], np.int64)
    worlds = world_numbers(samples)[samples.macro["log"][micro["macro"]]]
    confusion = np.zeros((3, 3), np.int64)
    np.add.at(confusion, (wanted, op), 1)
    recall = np.diag(confusion) / np.maximum(confusion.sum(1), 1)
    offered = (wanted == REJECT) & np.asarray(micro["time_valid"])
    error = np.abs(residual - np.asarray(micro["residual"], np.float64))
    away = np.abs(day - np.asarray(micro["time_label"], np.int64))
    report: dict[str, Any] = {
        "decisions": len(wanted),
        "offers": int(offered.sum()),
        "confusion": confusion.tolist(),
        "recall_by_op": {"accept": recall[ACCEPT], "reject": recall[REJECT], "end": recall[END]},
        "op_acc": float((op == wanted).mean()) if len(wanted) else float("nan"),
        "recall": float(recall[confusion.sum(1) > 0].mean()) if len(wanted) else float("nan"),
    }
    report["recall_by_op"] = {name: float(value) for name, value in report["recall_by_op"].items()}
    for name, values in (("q", error[:, 0]), ("p", error[:, 1])):
        report[f"mae_{name}"] = _share(values, offered)
        report[f"mae_{name}_interval"] = _interval(worlds, _ratio, np.where(offered, values, 0), offered)
    report["mse_residual"] = _share((error / np.array([10.0, 5.0])) ** 2 @ np.array([0.5, 0.5]), offered)
    report["day_acc"], report["day_within_1"] = _share(away == 0, offered), _share(away <= 1, offered)
    hits = op == wanted
    report["op_acc_interval"] = _interval(worlds, _ratio, hits, np.ones(len(hits)))
    return report


def evaluate_actions(model: nn.Module, samples: Samples, device: torch.device, majority_op: int) -> dict[str, Any]:
    """L3 and the trivial predictors on one split, and how far L3's errors are below the best trivial ones."""
    predicted = predicted_actions(model, DecisionTable(samples, device))
    report = {"L3": action_report(samples, predicted["op"].argmax(1), predicted["residual"], predicted["day"])}
    for name, guess in trivial_actions(samples, majority_op).items():
        report[name] = action_report(samples, guess["op"], guess["residual"], guess["day"])
    trivial = [report[name] for name in ("copy", "baseline", "majority")]
    for key in ("mae_q", "mae_p"):
        best = min(guess[key] for guess in trivial)
        report["L3"][f"{key}_ratio"] = report["L3"][key] / best if best > 0 else float("nan")
    report["L3"]["best_trivial_recall"] = max(guess["recall"] for guess in trivial)
    report["L3"]["calibration"] = _calibration(predicted["op"], np.asarray(samples.micro["op"], np.int64))
    return report


def _share(values: NDArray[Any], chosen: NDArray[np.bool_]) -> float:
    return float(values[chosen].mean()) if chosen.any() else float("nan")


def _interval(worlds: NDArray[np.int64], measure: Any, total: NDArray[Any], count: NDArray[Any]) -> list[float | None]:
    """Interval over resampled worlds; nothing where there is one world only, which tells no spread."""
    if len(np.unique(worlds)) < 2:
        return [None, None]
    return list(ratio_interval(worlds, measure, total, count))


def _ratio(total: Floats, count: Floats) -> Floats:
    return total / np.maximum(count, 1)


def _calibration(probability: Floats, wanted: NDArray[np.int64], bins: int = 10) -> list[dict[str, float]]:
    """Confidence of the chosen operator against how often it is right, in bins of confidence."""
    confidence, right = probability.max(1), probability.argmax(1) == wanted
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        {
            "confidence": float(confidence[which == b].mean()),
            "right": float(right[which == b].mean()),
            "decisions": int((which == b).sum()),
        }
        for b in range(bins)
        if (which == b).any()
    ]


@torch.inference_mode()
def evaluate_weights(model: GlobalCoordinator, samples: Samples, device: torch.device) -> dict[str, float]:
    """KL to the teacher and top-1 agreement of L4 over rounds with two threads or more, and of uniform weights."""
    table = RoundTable(samples, device)
    model.eval()
    chosen = torch.from_numpy(np.flatnonzero(table.threads > 1)).to(device)
    sums = np.zeros(4) if len(chosen) else np.full(4, np.nan)
    for index in chosen.split(BATCH) if len(chosen) else ():
        r = table.batch(index)
        scores, _ = model.scores(r.threads, r.days, r.roles, r.context, r.mask)
        ours = weight_loss(scores, r.teacher, r.mask)
        flat = weight_loss(torch.zeros_like(scores).masked_fill(~r.mask, -1e9), r.teacher, r.mask)
        sums += len(index) * np.array([float(ours.kl), float(ours.agree), float(flat.kl), float(flat.agree)])
    kl, agree, flat_kl, flat_agree = sums / max(1, len(chosen))
    return {"rounds": len(chosen), "kl": kl, "top1": agree, "uniform_kl": flat_kl, "uniform_top1": flat_agree}


def world_numbers(samples: Samples) -> NDArray[np.int64]:
    """[logs] a number per world."""
    return np.unique([log.world for log in samples.logs], return_inverse=True)[1].astype(np.int64)


def plan_advice(l3_val: Mapping[str, Any]) -> str:
    """The guide's rule between plan E and F, as far as samples can tell; the rest needs games."""
    ratio = max(l3_val["mae_q_ratio"], l3_val["mae_p_ratio"])
    if not ratio <= 0.8:
        return (
            f"Stay with plan E and improve L3: its errors are {ratio:.2f} of the best trivial predictor's, so "
            "residuals are not yet predicted accurately."
        )
    return (
        f"Residuals are predicted accurately ({ratio:.2f} of the best trivial predictor's errors). Play decides: near "
        "or above PenguinAgent keep plan E and improve L1; below it the baseline is the bottleneck, train plan F."
    )
