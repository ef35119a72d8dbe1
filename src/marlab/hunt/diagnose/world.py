"""Diagnosis of the world model: what it gets wrong, by how much, whether its channels stand where they should, and
pictures of what it shows, unrounded, beside the truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from marlab.hunt.data.dataset import Dataset, SplitName, load_dataset
from marlab.hunt.diagnose.parts import Check, Picture, Section, Table, fitting_weights, save_picture
from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.published import WORLD_CHANNELS, WORLD_LOSS, WORLD_OBS_MSE, WORLD_PSNR, WORLD_REWARD_MSE
from marlab.hunt.selfplay.gates import Gates
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.data import Transitions, transitions
from marlab.hunt.world_model.metrics import Evaluation, baselines, channel_names, evaluate_split, header, predict_all
from marlab.hunt.world_model.model import Prediction, WorldModel, load_world_model
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.report.figures import Curve, bars, curves, label, reference_lines
from marlab.lab.report.heat import heat_map
from marlab.lab.report.style import COLOURS, INK, legend, legends, panels, styled
from marlab.lab.runs.files import read_table
from marlab.lab.runs.metrics import column, read_metrics

SPLIT: SplitName = "test"
DRIFT = 5
"""Imagined steps after which positions must still hold."""
CLEARLY = 0.1
"""A correlation that is larger by this is not chance."""


@dataclass(frozen=True)
class WorldRun:
    """A run of `hunt pretrain world`, opened."""

    name: str
    path: Path
    config: PretrainWorldConfig
    model: WorldModel
    dataset: Dataset
    metrics: list[dict[str, Any]]

    @property
    def game(self) -> GameConfig:
        return self.dataset.game


@dataclass(frozen=True)
class Seen:
    """The held-out transitions with what the model expects of them."""

    rows: Transitions
    predicted: Prediction
    evaluation: Evaluation


def open_world_run(path: Path, name: str, data: Path | None) -> WorldRun:
    """Load everything that a diagnosis needs; what is missing or of another game is refused."""
    stored = read_table(path / "config.json", UserError)
    config = from_dict(PretrainWorldConfig, stored, f"{path / 'config.json'}")
    dataset = load_dataset(data or config.data)
    with fitting_weights(path):
        model = load_world_model(path, dataset.game)
    return WorldRun(name, path, config, model, dataset, read_metrics(path / "metrics.jsonl"))


def diagnose_world(run: WorldRun, gates: Gates) -> tuple[Section, Seen]:
    """Checks and tables on the held-out split; pictures are drawn from what is seen there."""
    rows = transitions(run.dataset, SPLIT, run.config.rows)
    predicted = predict_all(run.model, rows)
    evaluation = evaluate_split(run.model, rows)
    match = channel_match(predicted.planes, rows.next_obs)
    section = Section(f"World model {run.name} ({run.model.kind})")
    section.checks = _checks(run, evaluation, match, gates)
    simple = baselines(run.game, transitions(run.dataset, "train", run.config.rows), rows)
    section.figures = {
        "metrics": evaluation.metrics, "drift": evaluation.drift, "baselines": simple,
        "channel_match": match.tolist(),
    }  # fmt: skip
    section.remarks = [header(run.game, transitions(run.dataset, "all", run.config.rows).size), *_swapped(run, match)]
    section.tables = [
        _metric_block(evaluation.metrics, simple),
        _per_channel(run.game, evaluation.metrics, simple),
        _per_player(run.game, evaluation.metrics),
        _drift_table(evaluation.drift),
    ]
    return section, Seen(rows, predicted, evaluation)


def _checks(run: WorldRun, evaluation: Evaluation, match: Tensor, gates: Gates) -> list[Check]:
    m = evaluation.metrics
    later = evaluation.drift.get(str(DRIFT), {}).get("position_accuracy", [None])

    def check(name: str, value: float | None, gate: float, sense: Any, original: float | None = None) -> Check:
        return Check("world model", name, value, gate, sense, original, ("data",), run.name)

    return [
        check("teleport rate, worst player", _worst(m["teleport_rate"], max), gates.teleport, "at most"),
        check("vanish rate, worst player", _worst(m["vanish_rate"], max), gates.vanish, "at most"),
        check("channels that match another channel better", float(len(mismatches(match))), 0.0, "at most"),
        check("position accuracy, worst player", _worst(m["position_accuracy"], min), gates.position, "at least"),
        check("position accuracy after 5 steps, worst player", _worst(later, min), gates.position_5, "at least"),
        check("observation MSE", m["obs_mse"], gates.obs_mse, "at most", WORLD_OBS_MSE),
        check("reward MSE", m["reward_mse"], gates.reward_mse, "at most", WORLD_REWARD_MSE),
    ]


def _worst(values: list[float | None], choose: Any) -> float | None:
    known = [v for v in values if v is not None]
    return choose(known) if known else None


def channel_match(found: Tensor, true: Tensor) -> Tensor:
    """[C, C] correlation over all cells of every predicted channel (rows) with every true one (columns).

    A model whose channels stand where they should has its largest values on the diagonal. A channel that never
    changes, such as obstacles in a game without any, correlates with nothing: 0.
    """
    predicted, actual = (x.float().flatten(0, 2).double() for x in (found, true))  # [N, C]
    a, b = predicted - predicted.mean(0), actual - actual.mean(0)
    return (a.T @ b) / (a.norm(dim=0).unsqueeze(1) * b.norm(dim=0)).clamp_min(1e-9)


def mismatches(match: Tensor) -> list[tuple[int, int]]:
    """(predicted channel, true channel that it resembles clearly more than its own)."""
    best = match.argmax(1)
    clear = match.amax(1) > match.diagonal() + CLEARLY
    return [(c, int(best[c])) for c in range(len(match)) if bool(clear[c])]


def _swapped(run: WorldRun, match: Tensor) -> list[str]:
    names = channel_names(run.game)
    return [f"The predicted plane of {names[a]} resembles the true plane of {names[b]} more than its own."
            for a, b in mismatches(match)]  # fmt: skip


# --- tables ---------------------------------------------------------------------------------------------------------


def _metric_block(metrics: dict[str, Any], simple: dict[str, dict[str, Any]]) -> Table:
    original = {"obs_mse": WORLD_OBS_MSE, "psnr_sample": WORLD_PSNR, "reward_mse": WORLD_REWARD_MSE}
    names = {
        "rows": "rows", "obs_mse": "observation MSE, unrounded", "psnr_global": "PSNR of the mean error [dB]",
        "psnr_sample": "PSNR, mean over samples [dB]", "reward_mse": "reward MSE",
        "reward_off_share": "reward off by more than 0.25", "prey_appears_rate": "prey from nothing",
        "prey_missed_rate": "captured prey still shown", "prey_lost_rate": "present prey not shown",
        "done_accuracy": "player's end right", "done_all_accuracy": "episode's end right",
        "mask_accuracy": "legal actions right",
    }  # fmt: skip
    rows: list[tuple[Any, ...]] = [
        (label, metrics[key], *(base[key] for base in simple.values()), original.get(key))
        for key, label in names.items()
    ]
    for kind, value in metrics["reward_mse_by_class"].items():
        others = (base["reward_mse_by_class"][kind] for base in simple.values())
        rows.append((f"reward MSE, {kind}", value, *others, None))
    header_ = ("metric", "ours", *(name.replace("_", " ") for name in simple), "original")
    return Table("World model, held-out episodes", header_, rows)


def _per_channel(game: GameConfig, metrics: dict[str, Any], simple: dict[str, dict[str, Any]]) -> Table:
    names = channel_names(game)
    original = WORLD_CHANNELS if len(names) == len(WORLD_CHANNELS) else (None,) * len(names)
    copied = simple["copy_last_frame"]["channel_mse"]
    rows: list[tuple[Any, ...]] = [*zip(names, metrics["channel_mse"], copied, original)]
    return Table("MSE per channel, unrounded", ("channel", "ours", "copy of the last frame", "original"), rows)


def _per_player(game: GameConfig, metrics: dict[str, Any]) -> Table:
    keys = ("position_accuracy", "teleport_rate", "vanish_rate", "ghost_rate")
    rows = [(f"player {k + 1}", *(metrics[key][k] for key in keys)) for k in range(game.players)]
    return Table("Players (1 is the one who sees)", ("player", *(k.replace("_", " ") for k in keys)), rows)


def _drift_table(drift: dict[str, dict[str, Any]]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for steps, m in drift.items():
        spots = [v for v in m["position_accuracy"] if v is not None]
        rows.append(
            (int(steps), m["rows"], m["obs_mse"], min(spots) if spots else None, _worst(m["teleport_rate"], max),
             _worst(m["vanish_rate"], max), _worst(m["ghost_rate"], max), m["reward_mse"])
        )  # fmt: skip
    header_ = ("steps", "rows", "observation MSE", "position accuracy", "teleport", "vanish", "ghost", "reward MSE")
    return Table("Drift: after k imagined steps, worst player", header_, rows)


def pick_samples(seen: Seen, count: int) -> list[int]:
    """Rows to look at: the largest errors, and between them the median, so that no picture flatters."""
    error = (seen.predicted.planes - seen.rows.next_obs.float()).square().mean((1, 2, 3))
    order = error.argsort(descending=True)
    places = torch.linspace(0, len(order) // 2, count).long()
    return order[places].tolist()


# --- pictures ---------------------------------------------------------------------------------------------------------


TRIPLETS = 3
MARKS = ("o", "s", "D", "^", "v", "P", "X")
"""Players 1, 2, ... as the original's pictures draw them: circle, square, diamond, triangle."""
SHOWN_FROM = 0.02
"""Predicted values below this are too faint to draw."""


def draw_world(run: WorldRun, seen: Seen, section: Section, out: Path) -> None:
    """Draw everything and list it in the section."""
    chosen = pick_samples(seen, TRIPLETS)
    section.pictures += [
        _training(run, out), _channels(run, seen, out), _triplets(run, seen, chosen, out),
        _unrounded(run, seen, chosen[0], out), _match(run, section, out), _calibration(run, seen, out),
        _drift(run, seen, out),
    ]  # fmt: skip


def _training(run: WorldRun, out: Path) -> Picture:
    figure, (left, right) = panels(1, 2, size=(7.2, 4.4), title="Training of the world model")
    losses = {name: Curve(*column(run.metrics, f"wm/{name}/loss")) for name in ("train", "validation")}
    curves(left, losses, xlabel="epoch", ylabel="loss (its own units)", title="loss")
    left.set_yscale("log")
    if run.model.kind == "dense":  # only there the original's figure measures the same thing
        reference_lines(left, {"original, weighted": float(np.mean(WORLD_LOSS)), "original, unweighted": 0.01})
    errors = {"observation": Curve(*column(run.metrics, "wm/validation/obs_mse")),
              "reward": Curve(*column(run.metrics, "wm/validation/reward_mse"))}  # fmt: skip
    curves(right, errors, xlabel="epoch", ylabel="validation MSE", title="errors")
    right.set_yscale("log")
    reference_lines(right, {"original, observation": WORLD_OBS_MSE})
    legends(left, right)
    return save_picture(figure, out, f"world-training-{run.name}.png", "Loss and errors per epoch")


def _channels(run: WorldRun, seen: Seen, out: Path) -> Picture:
    names = channel_names(run.game)
    figure, (ax,) = panels(size=(12.0, 4.6), title="Error of every channel, unrounded")
    series: dict[str, Any] = {"ours": [1e3 * v for v in seen.evaluation.metrics["channel_mse"]]}
    if len(names) == len(WORLD_CHANNELS):
        series["original"] = [1e3 * v for v in WORLD_CHANNELS]
    bars(ax, names, series, ylabel="MSE [thousandths]", digits=2)
    legend(figure)
    return save_picture(figure, out, f"channels-{run.name}.png", "Mean squared error of every channel")


def _triplets(run: WorldRun, seen: Seen, chosen: list[int], out: Path) -> Picture:
    """Situation, truth and prediction; the prediction's marks are as opaque as it is sure, nothing is rounded."""
    figure, axes = panels(len(chosen), 3, size=(4.6, 4.9))
    for line, row in enumerate(chosen):
        joint = seen.rows.joint[row].tolist()
        facts = (f"self_a={joint[0]}, opp_as={joint[1:]}", f"true_rew {float(seen.rows.reward[row]):.3f}",
                 f"pred_rew {float(seen.predicted.reward[row]):.3f}")  # fmt: skip
        planes = (seen.rows.obs[row], seen.rows.next_obs[row], seen.predicted.planes[row])
        for ax, what, fact, shown in zip(axes[3 * line :], ("before", "true", "predicted"), facts, planes):
            _board(ax, run, shown.float(), f"#{row} {what}\n{fact}")
    legend(figure)
    return save_picture(figure, out, f"triplets-{run.name}.png",
                 "Before, truly after, predicted after (opacity is the predicted value)")  # fmt: skip


@styled
def _board(ax: Axes, run: WorldRun, planes: Tensor, title: str) -> None:
    game = run.game
    n, values = game.players, planes.numpy()
    ax.set(xlim=(-0.5, game.width - 0.5), ylim=(game.height - 0.5, -0.5))
    ax.set_box_aspect(game.height / game.width)
    ax.set_xticks(np.arange(-0.5, game.width), [])
    ax.set_yticks(np.arange(-0.5, game.height), [])
    ax.tick_params(length=0)
    looks: list[tuple[str, str, float, tuple[float, float]]] = []
    for k in range(n):
        angle = 2 * np.pi * k / n
        looks.append((MARKS[k % len(MARKS)], COLOURS[k % len(COLOURS)], 190.0, (np.cos(angle), np.sin(angle))))
    looks += [("s", "#6d7580", 1500.0, (0.0, 0.0)), ("*", "#8a5a2b", 420.0, (0.0, 0.0)),
              ("p", "#8d8a86", 300.0, (0.0, 0.0))]  # fmt: skip
    for c, (mark, paint, size, turn) in enumerate(looks[: game.channels]):
        rows, cols = (values[..., c] >= SHOWN_FROM).nonzero()
        if not len(rows):
            continue
        strength = np.clip(values[rows, cols, c], 0.0, 1.0)
        x, y = cols + 0.26 * turn[0], rows + 0.26 * turn[1]
        ax.scatter(x, y, s=size, marker=mark, color=paint, alpha=strength, edgecolors="white", linewidths=0.8,
                   label=channel_names(game)[c])  # fmt: skip
    ax.set_title(title, fontsize=12)


def _unrounded(run: WorldRun, seen: Seen, row: int, out: Path) -> Picture:
    """Every channel of one sample: true, predicted and the difference, with the numbers in the cells that are not 0."""
    names = channel_names(run.game)
    figure, axes = panels(3, len(names), size=(3.0, 3.0),
                          title=f"Sample #{row}, the largest error: every channel, unrounded")  # fmt: skip
    true, predicted = seen.rows.next_obs[row].float(), seen.predicted.planes[row]
    low, high = min(0.0, float(predicted.min())), max(1.0, float(predicted.max()))
    for c, name in enumerate(names):
        shown = ((f"{name}, true", true[..., c], None), ("predicted", predicted[..., c], None),
                 ("predicted - true", predicted[..., c] - true[..., c], 0.0))  # fmt: skip
        for line, (title, values, centre) in enumerate(shown):
            limits = (low, high) if centre is None else (-1.0, 1.0)
            ax = axes[line * len(names) + c]
            heat_map(ax, values.numpy(), xlabel="", ylabel="", title=title, limits=limits, centre=centre,
                     digits=3 if line else 0, square=True)  # fmt: skip
            for text in ax.texts:
                text.set_visible(bool(text.get_text().strip("0.")))  # hundreds of zeros would hide the rest
    return save_picture(figure, out, f"unrounded-{run.name}.png", "Unrounded channels with the error")


def _match(run: WorldRun, section: Section, out: Path) -> Picture:
    names = channel_names(run.game)
    figure, (ax,) = panels(size=(9.0, 6.2), title="Do channels stand where they should?")
    match = np.asarray(section.figures["channel_match"])
    heat_map(ax, match, xlabel="true channel", ylabel="predicted channel", rows=names, columns=names, digits=2,
             centre=0.0, limits=(-1.0, 1.0), bar="correlation")  # fmt: skip
    caption = "Correlation of every predicted channel with every true one: the largest belong on the diagonal"
    return save_picture(figure, out, f"channel-match-{run.name}.png", caption)


def _calibration(run: WorldRun, seen: Seen, out: Path) -> Picture:
    """How often a cell is occupied whose predicted value is so large, and how many such cells there are."""
    table = seen.evaluation.calibration
    edges = np.asarray(table["edges"])
    figure, (left, right) = panels(1, 2, size=(7.4, 5.2), title="Calibration of cell values, unrounded")
    label(left, "predicted value", "occupied [share of cells]", "came true")
    _diagonal(left)
    groups = {"players": channel_names(run.game)[: run.game.players], "prey": channel_names(run.game)[-2:]}
    for i, (name, channels) in enumerate(groups.items()):
        empty, full = (np.sum([table["channels"][c][k] for c in channels], 0) for k in ("empty", "occupied"))
        count = empty + full
        value = np.sum([np.asarray(table["channels"][c]["mean_predicted"]) *
                        (np.asarray(table["channels"][c]["empty"]) + table["channels"][c]["occupied"])
                        for c in channels], 0)  # fmt: skip
        filled = count > 0
        _points(left, value[filled] / count[filled], full[filled] / count[filled], i, name)
        for truth, cells in (("empty", empty), ("occupied", full)):
            _steps(right, edges, cells, 2 * i + (truth == "occupied"), f"{name}, truly {truth}")
    label(right, "predicted value", "cells", "how many")
    right.set_yscale("log")
    legends(left, right)
    return save_picture(figure, out, f"calibration-{run.name}.png", "Predicted cell values against what came true")


@styled
def _diagonal(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color=INK, linewidth=1.2, linestyle=":", label="perfectly calibrated")


@styled
def _points(ax: Axes, x: np.ndarray, y: np.ndarray, index: int, name: str) -> None:
    ax.plot(x, y, linestyle="none", marker=MARKS[index], color=COLOURS[index], label=name)


@styled
def _steps(ax: Axes, edges: np.ndarray, counts: np.ndarray, index: int, name: str) -> None:
    ax.stairs(np.maximum(counts, 0.5), edges, color=COLOURS[index], linewidth=2.0, label=name, baseline=0.5)


def _drift(run: WorldRun, seen: Seen, out: Path) -> Picture:
    drift = seen.evaluation.drift
    steps = [int(k) for k in drift]
    figure, (left, right) = panels(1, 2, size=(7.0, 4.6), title="Drift over imagined steps")
    places = [[_known(m["position_accuracy"][k]) for m in drift.values()] for k in range(run.game.players)]
    curves(left, {f"player {k + 1}": Curve(steps, y) for k, y in enumerate(places)}, xlabel="imagined steps",
           ylabel="position accuracy [share]", title="where players are")  # fmt: skip
    left.set_ylim(min(0.96, *(y for line in places for y in line if y == y)) - 0.01, 1.005)  # a flat line needs a scale
    reference_lines(left, {"gate at 1": 0.995, "gate at 5": 0.97})
    rates = {"teleport": "teleport_rate", "vanish": "vanish_rate", "ghost": "ghost_rate"}
    series = {n: Curve(steps, [max((v for v in m[k] if v is not None), default=np.nan) for m in drift.values()])
              for n, k in rates.items()}  # fmt: skip
    curves(right, series, xlabel="imagined steps", ylabel="share, worst player", title="what cannot happen")
    right.set_ylim(-0.0005, max(0.01, right.get_ylim()[1]))
    legends(left, right)
    return save_picture(figure, out, f"drift-{run.name}.png", "Positions and impossible events after k imagined steps")


def _known(value: float | None) -> float:
    return float("nan") if value is None else value
