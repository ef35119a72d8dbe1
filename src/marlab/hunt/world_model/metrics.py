"""How good a world model is, in numbers that say what went wrong.

Everything is measured on unrounded predictions; a cell counts as occupied from 0.5 on, as in a picture. Positions,
teleports and vanishing are counted per player: k = 1 is the player whose view it is.

Letters: R rows, n players, C channels, X cells, m kinds of prey, K unrolled steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.hunt.world_model.data import Transitions, cells, legal_from_planes
from marlab.hunt.world_model.model import Prediction, WorldModel

DRIFT_STEPS = (1, 2, 3, 5, 10)
OCCUPIED = 0.5
CALIBRATION_EDGES = np.round(np.linspace(-0.5, 1.5, 41), 2)
REWARD_TOLERANCE = 0.25
SMALLEST_MSE = 1e-10
"""An error-free sample counts as this much, 100 dB."""


def psnr(mse: float) -> float:
    """Peak signal-to-noise ratio in decibels for a peak of 1."""
    return 10.0 * math.log10(1.0 / max(mse, SMALLEST_MSE))


def channel_names(game: GameConfig) -> list[str]:
    prey = ["stags", "hares"] if game.rules == "hunt" else ["drifts"]
    return [f"player {k + 1}" for k in range(game.players)] + ["obstacles", *prey]


# --- one prediction per row -----------------------------------------------------------------------------------------


def evaluate(game: GameConfig, predicted: Prediction, before: Tensor, row: Transitions) -> dict[str, Any]:
    """All metrics of what was `predicted` against the true transitions `row`.

    before: [R, H, W, C] the planes that the predictions started from: true ones, or in an unrolled step imagined ones.
    """
    true = row.next_obs.float()
    errors = (predicted.planes - true).square()  # [R, H, W, C]
    per_row = errors.mean((1, 2, 3))
    mse = float(errors.mean())
    report: dict[str, Any] = {
        "rows": row.size,
        "obs_mse": mse,
        "channel_mse": errors.mean((0, 1, 2)).tolist(),
        "psnr_global": psnr(mse),
        "psnr_sample": float((-10.0 * per_row.clamp_min(SMALLEST_MSE).log10()).mean()),
        **_reward_metrics(game, predicted.reward, row),
        **_position_metrics(game, predicted.planes, before, true),
        **_prey_metrics(game, predicted.planes, before, true),
        **_done_metrics(predicted.done, row.done),
    }
    expected, actual = legal_from_planes(game, predicted.planes), legal_from_planes(game, true)
    alive = true[..., 0].flatten(1).amax(1) >= OCCUPIED
    report["mask_accuracy"] = _share((expected == actual).all(1), alive)
    return report


def _reward_metrics(game: GameConfig, predicted: Tensor, row: Transitions) -> dict[str, Any]:
    error = (predicted - row.reward).square()
    n, kind = game.players, row.reward_class
    groups = {"none": kind == 0, "hare": (kind > 0) & (kind <= n), "stag": kind > n}
    return {
        "reward_mse": float(error.mean()),
        "reward_mse_by_class": {name: _mean(error, which) for name, which in groups.items()},
        "reward_off_share": float((error.sqrt() > REWARD_TOLERANCE).float().mean()),
    }


def _position_metrics(game: GameConfig, predicted: Tensor, before: Tensor, true: Tensor) -> dict[str, Any]:
    """Shares per player: right cell, jump of two cells or more, vanished while alive, seen while absent."""
    n = game.players
    seen, was, now = predicted[..., :n], before[..., :n], true[..., :n]
    alive = now.flatten(1, 2).amax(1) >= OCCUPIED  # [R, n]
    started = was.flatten(1, 2).amax(1) >= OCCUPIED
    shown = seen.flatten(1, 2).amax(1) >= OCCUPIED
    place, origin, goal = cells(seen), cells(was), cells(now)
    jump = (place // game.width - origin // game.width).abs() + (place % game.width - origin % game.width).abs()
    which = range(n)
    return {
        "position_accuracy": [_share((place == goal)[:, k], alive[:, k]) for k in which],
        "teleport_rate": [_share((jump >= 2)[:, k], (alive & started)[:, k]) for k in which],
        "vanish_rate": [_share(~shown[:, k], alive[:, k]) for k in which],
        "ghost_rate": [_share(shown[:, k], ~alive[:, k]) for k in which],
    }


def _prey_metrics(game: GameConfig, predicted: Tensor, before: Tensor, true: Tensor) -> dict[str, Any]:
    first = game.players + 1
    had, has, seen = (planes[..., first:] >= OCCUPIED for planes in (before, true, predicted))
    return {
        "prey_appears_rate": _share(seen, ~had & ~has),
        "prey_missed_rate": _share(seen, had & ~has),
        "prey_lost_rate": _share(~seen, had & has),
    }


def _done_metrics(predicted: Tensor | None, done: Tensor) -> dict[str, Any]:
    """Shares of right answers about the player's and the episode's end; None where the model has no such head."""
    if predicted is None:
        return dict.fromkeys(("done_accuracy", "done_all_accuracy", "done_recall", "done_all_recall"))
    expected = predicted >= 0.5
    right = (expected == done).float().mean(0).tolist()
    return {
        "done_accuracy": right[0],
        "done_all_accuracy": right[1],
        "done_recall": _share(expected[:, 0], done[:, 0]),
        "done_all_recall": _share(expected[:, 1], done[:, 1]),
    }


def _share(hits: Tensor, among: Tensor) -> float | None:
    """Share of `among` that are hits; None if there are none."""
    count = int(among.sum())
    return float((hits & among).sum()) / count if count else None


def _mean(values: Tensor, among: Tensor) -> float | None:
    return float(values[among].mean()) if bool(among.any()) else None


# --- whole data sets --------------------------------------------------------------------------------------------------


class Evaluation(NamedTuple):
    """What a split says about a model: plain values throughout."""

    metrics: dict[str, Any]
    drift: dict[str, dict[str, Any]]  # by number of unrolled steps
    calibration: dict[str, Any]


@torch.no_grad()
def predict_all(model: WorldModel, data: Transitions, chunk: int = 4096) -> Prediction:
    """Predictions of every row, from its true planes."""
    parts = [
        model.predict(data.obs[i : i + chunk], data.joint[i : i + chunk], data.t[i : i + chunk])
        for i in range(0, data.size, chunk)
    ]
    done = [p.done for p in parts if p.done is not None]
    return Prediction(
        torch.cat([p.planes for p in parts]), torch.cat([p.reward for p in parts]), torch.cat(done) if done else None
    )


def evaluate_split(
    model: WorldModel, data: Transitions, steps: Sequence[int] = DRIFT_STEPS, chunk: int = 4096
) -> Evaluation:
    """Metrics of one step, of several imagined steps, and the calibration of single cells."""
    predicted = predict_all(model, data, chunk)
    metrics = evaluate(model.game, predicted, data.obs.float(), data)
    return Evaluation(
        metrics, drift(model, data, steps, chunk), calibration(model.game, predicted.planes, data.next_obs)
    )


@torch.no_grad()
def drift(model: WorldModel, data: Transitions, steps: Sequence[int], chunk: int = 4096) -> dict[str, dict[str, Any]]:
    """All metrics after k imagined steps, from every row whose player takes part in k more steps.

    The true joint actions are given, the planes are the model's own. Long unrolls have fewer rows: `rows` tells.
    """
    start = data.obs.float()
    row = torch.arange(data.size, device=data.t.device)  # the true row that the imagined one stands for
    reports: dict[str, dict[str, Any]] = {}
    for k in range(1, max(steps) + 1):
        now = data.select(row)
        predicted = predict_all(model, now._replace(obs=start), chunk)
        if k in steps:
            reports[str(k)] = evaluate(model.game, predicted, start, now)
        goes_on = now.follow >= 0
        if k == max(steps) or not bool(goes_on.any()):
            break
        start, row = model.settle(predicted.planes)[goes_on], now.follow[goes_on]
    return reports


def calibration(game: GameConfig, predicted: Tensor, true: Tensor) -> dict[str, Any]:
    """Histogram of predicted cell values per channel, apart for empty and occupied cells, and their bin means.

    Values beyond the outer edges are counted in the outer bins.
    """
    edges = CALIBRATION_EDGES
    values = predicted.cpu().double().numpy().reshape(-1, game.channels)
    occupied = true.cpu().numpy().reshape(-1, game.channels) > 0
    bins = np.clip(np.digitize(values, edges) - 1, 0, len(edges) - 2)
    table: dict[str, Any] = {"edges": edges.tolist(), "channels": {}}
    for c, name in enumerate(channel_names(game)):
        count = [np.bincount(bins[:, c][occupied[:, c] == here], minlength=len(edges) - 1) for here in (False, True)]
        total = count[0] + count[1]
        means = np.bincount(bins[:, c], weights=values[:, c], minlength=len(edges) - 1) / np.maximum(total, 1)
        table["channels"][name] = {
            "empty": count[0].tolist(),
            "occupied": count[1].tolist(),
            "mean_predicted": np.where(total > 0, means, 0.0).tolist(),
            "share_occupied": (count[1] / np.maximum(total, 1)).tolist(),
        }
    return table


def baselines(game: GameConfig, train: Transitions, data: Transitions) -> dict[str, dict[str, Any]]:
    """The same metrics for predictors that know nothing: the last frame again, and the mean of every cell."""
    mean = train.next_obs.float().mean(0)
    pay = train.reward.mean()
    ends = train.done.float().mean(0).expand(data.size, -1)
    reward = pay.expand(data.size)
    copy = Prediction(data.obs.float(), torch.zeros_like(reward), torch.zeros_like(ends))
    average = Prediction(mean.expand(data.size, -1, -1, -1), reward, ends)
    start = data.obs.float()
    return {
        "copy_last_frame": evaluate(game, copy, start, data),
        "mean_of_every_cell": evaluate(game, average, start, data),
    }


def header(game: GameConfig, rows: int) -> str:
    """The line that names what was loaded."""
    shape = (game.height, game.width, game.channels)
    return f"loaded obs shape {shape}, action_dim {game.actions}, dataset size {rows}, inferred n_agents {game.players}"


def describe(game: GameConfig, name: str, metrics: dict[str, Any]) -> str:
    """A report as a block of text; shares as percentages."""
    channels = "  ".join(f"{c} {v:.2e}" for c, v in zip(channel_names(game), metrics["channel_mse"]))

    def shares(key: str) -> str:
        values = metrics[key] if isinstance(metrics[key], list) else [metrics[key]]
        return " ".join("-" if v is None else f"{100 * v:.3f}%" for v in values)

    lines = [
        f"[world model] {name}, {metrics['rows']} rows",
        f"  obs MSE {metrics['obs_mse']:.3e}, PSNR {metrics['psnr_global']:.2f} dB (global), "
        f"{metrics['psnr_sample']:.2f} dB (mean of samples)",
        f"  per channel: {channels}",
        f"  reward MSE {metrics['reward_mse']:.3e}, off by more than {REWARD_TOLERANCE}: {shares('reward_off_share')}",
        f"  position accuracy {shares('position_accuracy')}; teleport {shares('teleport_rate')}",
        f"  vanish {shares('vanish_rate')}; ghost {shares('ghost_rate')}",
        f"  prey appears {shares('prey_appears_rate')}, missed {shares('prey_missed_rate')}, "
        f"lost {shares('prey_lost_rate')}",
        f"  done {shares('done_accuracy')}, episode over {shares('done_all_accuracy')}, mask {shares('mask_accuracy')}",
    ]
    return "\n".join(lines)
