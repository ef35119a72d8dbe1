"""Diagnosis of the world model: what it gets wrong, by how much, and whether its channels stand where they should."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from marlab.hunt.data.dataset import Dataset, SplitName, load_dataset
from marlab.hunt.diagnose.parts import Check, Section, Table, fitting_weights
from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.published import WORLD_CHANNELS, WORLD_OBS_MSE, WORLD_PSNR, WORLD_REWARD_MSE
from marlab.hunt.training.gates import Gates
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.data import Transitions, transitions
from marlab.hunt.world_model.metrics import Evaluation, baselines, channel_names, evaluate_split, header, predict_all
from marlab.hunt.world_model.model import Prediction, WorldModel, load_world_model
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json
from marlab.lab.runs.metrics import read_metrics

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
    stored = read_json(path / "config.json", UserError)
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
        _drift(evaluation.drift),
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


def _drift(drift: dict[str, dict[str, Any]]) -> Table:
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
