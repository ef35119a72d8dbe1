"""Diagnosis of the world model: what it gets wrong, by how much, whether its channels stand where they should, and
pictures of what it shows, unrounded, beside the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from marlab.hunt.data.dataset import Dataset, load_dataset
from marlab.hunt.diagnose.checks import Check, Picture, Section, Table, fitting_weights, run_pictures, save_picture
from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.published import WORLD_CHANNELS, WORLD_OBS_MSE, WORLD_PSNR, WORLD_REWARD_MSE
from marlab.hunt.selfplay.gates import Gates
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.data import Transitions, transitions
from marlab.hunt.world_model.metrics import channel_names, predict_all
from marlab.hunt.world_model.model import Prediction, WorldModel, load_world_model
from marlab.hunt.world_model.pretrain import world_report
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.report.figures import Curve, bars, curves, label, reference_lines
from marlab.lab.report.heat import heat_map
from marlab.lab.report.style import COLOURS, INK, legend, legends, panels, styled
from marlab.lab.runs.files import read_table, trusting

DRIFT = "5"
"""Imagined steps after which positions must still hold."""
CLEARLY = 0.1
"""A correlation that is larger by this is not chance."""
RATES = ("teleport", "vanish", "ghost")
METRICS = {
    "rows": "rows", "obs_mse": "observation MSE, unrounded", "psnr_global": "PSNR of the mean error [dB]",
    "psnr_sample": "PSNR, mean over samples [dB]", "reward_mse": "reward MSE",
    "reward_off_share": "reward off by more than 0.25", "prey_appears_rate": "prey from nothing",
    "prey_missed_rate": "captured prey still shown", "prey_lost_rate": "present prey not shown",
    "done_accuracy": "player's end right", "done_all_accuracy": "episode's end right",
    "mask_accuracy": "legal actions right",
}  # fmt: skip
TRIPLETS = 3
MARKS = ("o", "s", "D", "^", "v", "P", "X")
"""Players 1, 2, ... as the original's pictures draw them: circle, square, diamond, triangle."""
SHOWN_FROM = 0.02
"""Predicted values below this are too faint to draw."""


@dataclass(frozen=True)
class WorldRun:
    """A run of `hunt pretrain world`, opened, with held-out transitions and what the model expects of them."""

    name: str
    path: Path
    model: WorldModel
    dataset: Dataset
    test: dict[str, Any]  # of world_report.json, or the same of other data
    rows: Transitions
    predicted: Prediction

    @property
    def game(self) -> GameConfig:
        return self.dataset.game


def open_world_run(path: Path, name: str, data: Path | None) -> WorldRun:
    """Load everything that a diagnosis needs; what is missing or of another game is refused."""
    config = from_dict(PretrainWorldConfig, read_table(path / "config.json", UserError), f"{path / 'config.json'}")
    dataset = load_dataset(data or config.data)
    with fitting_weights(path):
        model = load_world_model(path, dataset.game)
    stored = read_table(path / "world_report.json", UserError)
    with trusting(f"{path / 'world_report.json'} does not tell what was measured"):
        test = (stored if data is None else world_report(model, dataset, config.rows))["splits"]["test"]
        [test[part] for part in ("metrics", "drift", "baselines", "calibration")]
    rows = transitions(dataset, "test", config.rows)
    return WorldRun(name, path, model, dataset, test, rows, predict_all(model, rows))


def diagnose_world(run: WorldRun, gates: Gates, out: Path | None) -> Section:
    """Checks and tables on the held-out split, and pictures in `out`."""
    names, match = channel_names(run.game), channel_match(run.predicted.planes, run.rows.next_obs)
    metrics, drift, swapped = run.test["metrics"], run.test["drift"], mismatches(match)
    section = Section(f"World model {run.name} ({run.model.kind})")
    later = drift.get(DRIFT, {}).get("position_accuracy", [None])

    def check(name: str, value: float | None, gate: float, sense: Any, original: float | None = None) -> Check:
        return Check("world model", name, value, gate, sense, original, ("data",), run.name)

    section.checks = [
        check("teleport rate, worst player", _worst(metrics["teleport_rate"], max), gates.teleport, "at most"),
        check("vanish rate, worst player", _worst(metrics["vanish_rate"], max), gates.vanish, "at most"),
        check("channels that match another channel better", float(len(swapped)), 0.0, "at most"),
        check("position accuracy, worst player", _worst(metrics["position_accuracy"], min), gates.position, "at least"),
        check("position accuracy after 5 steps, worst player", _worst(later, min), gates.position_5, "at least"),
        check("observation MSE", metrics["obs_mse"], gates.obs_mse, "at most", WORLD_OBS_MSE),
        check("reward MSE", metrics["reward_mse"], gates.reward_mse, "at most", WORLD_REWARD_MSE),
    ]
    section.figures = {
        **{key: run.test[key] for key in ("metrics", "drift", "baselines")},
        "channel_match": match.tolist(),
    }
    section.remarks = [
        f"The predicted plane of {names[a]} resembles the true plane of {names[b]} more than its own."
        for a, b in swapped
    ]
    section.tables = _tables(run, names)
    if out is not None:
        chosen = pick_samples(run, TRIPLETS)
        captions = {"losses": "Loss and errors per epoch"}
        section.pictures = [
            *run_pictures(run.path, out, run.name, captions),
            _channels(run, names, out),
            _triplets(run, chosen, out),
            _unrounded(run, names, chosen[0], out),
            _match(run, names, match, out),
            _calibration(run, names, out),
            _drift(run, out),
        ]
    return section


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


def _tables(run: WorldRun, names: list[str]) -> list[Table]:
    metrics, simple = run.test["metrics"], run.test["baselines"]
    original = {"obs_mse": WORLD_OBS_MSE, "psnr_sample": WORLD_PSNR, "reward_mse": WORLD_REWARD_MSE}
    block: list[tuple[Any, ...]] = [
        (label, metrics[key], *(base[key] for base in simple.values()), original.get(key))
        for key, label in METRICS.items()
    ]
    for kind, value in metrics["reward_mse_by_class"].items():
        others = (base["reward_mse_by_class"][kind] for base in simple.values())
        block.append((f"reward MSE, {kind}", value, *others, None))
    theirs = WORLD_CHANNELS if len(names) == len(WORLD_CHANNELS) else (None,) * len(names)
    channels = [*zip(names, metrics["channel_mse"], simple["copy_last_frame"]["channel_mse"], theirs)]
    keys = ("position_accuracy", *(f"{rate}_rate" for rate in RATES))
    players = [(f"player {k + 1}", *(metrics[key][k] for key in keys)) for k in range(run.game.players)]
    steps = [
        (int(k), m["rows"], m["obs_mse"], _worst(m["position_accuracy"], min),
         *(_worst(m[f"{rate}_rate"], max) for rate in RATES), m["reward_mse"])
        for k, m in run.test["drift"].items()
    ]  # fmt: skip
    header = ("metric", "ours", *(name.replace("_", " ") for name in simple), "original")
    return [
        Table("World model, held-out episodes", header, block),
        Table("MSE per channel, unrounded", ("channel", "ours", "copy of the last frame", "original"), channels),
        Table("Players (1 is the one who sees)", ("player", *(k.replace("_", " ") for k in keys)), players),
        Table(
            "Drift: after k imagined steps, worst player",
            ("steps", "rows", "observation MSE", "position accuracy", *RATES, "reward MSE"),
            steps,
        ),
    ]


def pick_samples(run: WorldRun, count: int) -> list[int]:
    """Rows to look at: the largest errors, and between them the median, so that no picture flatters."""
    error = (run.predicted.planes - run.rows.next_obs.float()).square().mean((1, 2, 3))
    order = error.argsort(descending=True)
    return order[torch.linspace(0, len(order) // 2, count).long()].tolist()


# --- pictures ---------------------------------------------------------------------------------------------------------


def _channels(run: WorldRun, names: list[str], out: Path) -> Picture:
    figure, (ax,) = panels(size=(12.0, 4.6), title="Error of every channel, unrounded")
    series = {"ours": [1e3 * v for v in run.test["metrics"]["channel_mse"]]}
    series |= {"original": [1e3 * v for v in WORLD_CHANNELS]} if len(names) == len(WORLD_CHANNELS) else {}
    bars(ax, names, series, ylabel="MSE [thousandths]", digits=2)
    legend(figure)
    return save_picture(figure, out, f"channels-{run.name}.png", "Mean squared error of every channel")


def _triplets(run: WorldRun, chosen: list[int], out: Path) -> Picture:
    """Situation, truth and prediction; the prediction's marks are as opaque as it is sure, nothing is rounded."""
    figure, axes = panels(len(chosen), 3, size=(4.6, 4.9))
    for line, row in enumerate(chosen):
        joint = run.rows.joint[row].tolist()
        facts = (
            f"self_a={joint[0]}, opp_as={joint[1:]}",
            f"true_rew {float(run.rows.reward[row]):.3f}",
            f"pred_rew {float(run.predicted.reward[row]):.3f}",
        )
        planes = (run.rows.obs[row], run.rows.next_obs[row], run.predicted.planes[row])
        for ax, what, fact, shown in zip(axes[3 * line :], ("before", "true", "predicted"), facts, planes):
            _board(ax, run.game, shown.float().numpy(), f"#{row} {what}\n{fact}")
    legend(figure)
    caption = "Before, truly after, predicted after (opacity is the predicted value)"
    return save_picture(figure, out, f"triplets-{run.name}.png", caption)


@styled
def _board(ax: Axes, game: GameConfig, values: np.ndarray, title: str) -> None:
    ax.set(xlim=(-0.5, game.width - 0.5), ylim=(game.height - 0.5, -0.5))
    ax.set_box_aspect(game.height / game.width)
    ax.set_xticks(np.arange(-0.5, game.width), [])
    ax.set_yticks(np.arange(-0.5, game.height), [])
    ax.tick_params(length=0)
    looks = [(MARKS[k % len(MARKS)], COLOURS[k % len(COLOURS)], 190.0) for k in range(game.players)]
    looks += [("s", "#6d7580", 1500.0), ("*", "#8a5a2b", 420.0), ("p", "#8d8a86", 300.0)]
    for c, (mark, paint, size) in enumerate(looks[: game.channels]):
        rows, cols = (values[..., c] >= SHOWN_FROM).nonzero()
        if not len(rows):
            continue
        turn, away = 2 * np.pi * c / game.players, 0.26 * (c < game.players)  # players stand around a cell's middle
        x, y = cols + away * np.cos(turn), rows + away * np.sin(turn)
        strength = np.clip(values[rows, cols, c], 0.0, 1.0)
        ax.scatter(x, y, s=size, marker=mark, color=paint, alpha=strength, edgecolors="white", linewidths=0.8,
                   label=channel_names(game)[c])  # fmt: skip
    ax.set_title(title, fontsize=12)


def _unrounded(run: WorldRun, names: list[str], row: int, out: Path) -> Picture:
    """Every channel of one sample: true, predicted and the difference, with the numbers in the cells that are not 0."""
    title = f"Sample #{row}, the largest error: every channel, unrounded"
    figure, axes = panels(3, len(names), size=(3.0, 3.0), title=title)
    true, predicted = run.rows.next_obs[row].float(), run.predicted.planes[row]
    limits = (min(0.0, float(predicted.min())), max(1.0, float(predicted.max())))
    for c, name in enumerate(names):
        shown = (
            (f"{name}, true", true, limits, None),
            ("predicted", predicted, limits, None),
            ("predicted - true", predicted - true, (-1.0, 1.0), 0.0),
        )
        for line, (title, planes, scale, centre) in enumerate(shown):
            ax = axes[line * len(names) + c]
            heat_map(ax, planes[..., c].numpy(), xlabel="", ylabel="", title=title, limits=scale, centre=centre,
                     digits=3 if line else 0, square=True)  # fmt: skip
            for text in ax.texts:
                text.set_visible(bool(text.get_text().strip("0.")))  # hundreds of zeros would hide the rest
    return save_picture(figure, out, f"unrounded-{run.name}.png", "Unrounded channels with the error")


def _match(run: WorldRun, names: list[str], match: Tensor, out: Path) -> Picture:
    figure, (ax,) = panels(size=(9.0, 6.2), title="Do channels stand where they should?")
    heat_map(ax, match.numpy(), xlabel="true channel", ylabel="predicted channel", rows=names, columns=names, digits=2,
             centre=0.0, limits=(-1.0, 1.0), bar="correlation")  # fmt: skip
    caption = "Correlation of every predicted channel with every true one: the largest belong on the diagonal"
    return save_picture(figure, out, f"channel-match-{run.name}.png", caption)


def _calibration(run: WorldRun, names: list[str], out: Path) -> Picture:
    """How often a cell is occupied whose predicted value is so large, and how many such cells there are."""
    table = run.test["calibration"]
    figure, (left, right) = panels(1, 2, size=(7.4, 5.2), title="Calibration of cell values, unrounded")
    label(left, "predicted value", "occupied [share of cells]", "came true")
    label(right, "predicted value", "cells", "how many")
    groups = {"players": names[: run.game.players], "prey": names[-2:]}
    for i, (name, channels) in enumerate(groups.items()):
        found = [{k: np.asarray(v) for k, v in table["channels"][c].items()} for c in channels]
        empty, full = (np.sum([c[k] for c in found], 0) for k in ("empty", "occupied"))
        value = np.sum([c["mean_predicted"] * (c["empty"] + c["occupied"]) for c in found], 0)
        _draw_calibration(left, right, np.asarray(table["edges"]), {"empty": empty, "occupied": full}, value, i, name)
    right.set_yscale("log")
    legends(left, right)
    return save_picture(figure, out, f"calibration-{run.name}.png", "Predicted cell values against what came true")


@styled
def _draw_calibration(
    left: Axes,
    right: Axes,
    edges: np.ndarray,
    cells: Mapping[str, np.ndarray],
    value: np.ndarray,
    index: int,
    name: str,
) -> None:
    if index == 0:
        left.plot([0, 1], [0, 1], color=INK, linewidth=1.2, linestyle=":", label="perfectly calibrated")
    count = cells["empty"] + cells["occupied"]
    filled = count > 0
    x, y = value[filled] / count[filled], cells["occupied"][filled] / count[filled]
    left.plot(x, y, linestyle="none", marker=MARKS[index], color=COLOURS[index], label=name)
    for place, (truth, counts) in enumerate(cells.items()):
        right.stairs(np.maximum(counts, 0.5), edges, color=COLOURS[2 * index + place], linewidth=2.0,
                     label=f"{name}, truly {truth}", baseline=0.5)  # fmt: skip


def _drift(run: WorldRun, out: Path) -> Picture:
    steps, drift = [int(k) for k in run.test["drift"]], list(run.test["drift"].values())
    figure, (left, right) = panels(1, 2, size=(7.0, 4.6), title="Drift over imagined steps")
    places = np.array([m["position_accuracy"] for m in drift], dtype=float).T  # [n, steps], NaN where nobody is left
    lines = {f"player {k + 1}": Curve(steps, y) for k, y in enumerate(places)}
    curves(left, lines, xlabel="imagined steps", ylabel="position accuracy [share]", title="where players are")
    left.set_ylim(min(0.96, float(np.nanmin(places))) - 0.01, 1.005)  # a flat line needs a scale
    reference_lines(left, {"gate at 1": 0.995, "gate at 5": 0.97})
    rates = {rate: [_worst(m[f"{rate}_rate"], max) for m in drift] for rate in RATES}
    series = {rate: Curve(steps, np.array(values, dtype=float)) for rate, values in rates.items()}
    curves(right, series, xlabel="imagined steps", ylabel="share, worst player", title="what cannot happen")
    right.set_ylim(-0.0005, max(0.01, right.get_ylim()[1]))
    legends(left, right)
    return save_picture(figure, out, f"drift-{run.name}.png", "Positions and impossible events after k imagined steps")
