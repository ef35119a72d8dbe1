"""`marlab hunt pretrain world`: train the world model on offline data and measure it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from marlab.hunt.data.dataset import Dataset, load_dataset
from marlab.hunt.players.published import WORLD_LOSS, WORLD_OBS_MSE
from marlab.hunt.world_model.config import ModelKind, PretrainWorldConfig
from marlab.hunt.world_model.data import LEAVE, Transitions, transitions
from marlab.hunt.world_model.metrics import baselines, describe, evaluate, evaluate_split, header, predict_all
from marlab.hunt.world_model.model import (
    DenseModel,
    Prediction,
    WorldModel,
    channel_factors,
    dense_loss,
    make_model,
    save_world_model,
)
from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.ppo.timing import Stopwatch
from marlab.lab.progress import Progress, stage
from marlab.lab.report.figures import Curve, curves, reference_lines
from marlab.lab.report.style import legends, panels, save
from marlab.lab.runs.checkpoint import CheckpointStore, Keep, building, save_checkpoint
from marlab.lab.runs.files import write_json
from marlab.lab.runs.metrics import column, read_metrics
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import Halfway, drive
from marlab.lab.stats import share_interval
from marlab.lab.verdict import Sentence, say

CHECKPOINTS = "hunt/pretrain-world"
SAMPLES = "hunt/world-samples"
MAX_GRAD_NORM = 1.0
FINAL_RATE = 1e-5
"""Where the step size's cosine ends."""
FIGURES_S = 4.0
"""Kept back of a time limit for the figures."""


class WorldTrainer:
    """One epoch at a time, to be saved after any batch; `total` shrinks to the epoch at which patience ran out."""

    def __init__(self, config: PretrainWorldConfig, data: Dataset) -> None:
        self.config, self.game = config, data.game
        self.device = choose_device(config.device)
        self.step, self.total = 0, config.epochs
        self.rngs = Rngs(config.seed)
        train, validation = (transitions(data, split, config.rows) for split in ("train", "validation"))
        self.train, self.validation = train.to(self.device), validation.to(self.device)
        self.model = make_model(
            config.model,
            data.game,
            channel_weights=config.channel_weights,
            generator=self.rngs.torch("init"),
        ).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), config.learning_rate)
        self.best_loss, self.best_step = math.inf, 0
        self.order: Tensor | None = None  # of the rows in the epoch that is under way
        self.batches, self.summed = 0, torch.zeros((), device=self.device)  # of it: done, and their losses
        self.should_stop: Callable[[], bool] = lambda: False
        self.watch = Stopwatch(self.device)

    def iterate(self) -> Mapping[str, Any]:
        """One epoch of training and one pass over the validation split."""
        rate = self._learning_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with self.watch("train"):
            loss = self._epoch()
        with self.watch("eval"):
            values = self._validate()
        self.step += 1
        if values["wm/validation/loss"] < self.best_loss:
            self.best_loss, self.best_step = values["wm/validation/loss"], self.step
        if self.step - self.best_step >= self.config.patience:
            self.total = self.step
        spent = {f"time/{name}": seconds for name, seconds in self.watch.pop().items()}
        score = -values["wm/validation/loss"]
        return {"wm/train/loss": loss, "wm/learning_rate": rate, **values, **spent, "score": score}

    def _learning_rate(self) -> float:
        config = self.config
        done = self.step / max(config.epochs - 1, 1)
        part = 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))
        return FINAL_RATE + (config.learning_rate - FINAL_RATE) * part

    def _epoch(self) -> float:
        if self.order is None:
            self.order = torch.randperm(self.train.size, generator=self.rngs.torch("order"))
            self.batches, self.summed = 0, torch.zeros((), device=self.device)
        order = self.order.to(self.device)
        for index in order.split(self.config.batch_size)[self.batches :]:
            loss = self.model.loss(self.train.select(index)).mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), MAX_GRAD_NORM)
            self.optimizer.step()
            self.summed += loss.detach() * len(index)
            self.batches += 1
            if self.should_stop():
                raise Halfway
        self.order = None
        return float(self.summed) / self.train.size

    @torch.no_grad()
    def _validate(self) -> dict[str, Any]:
        """Loss, and the one-step metrics that training is judged by."""
        data, size = self.validation, self.validation.size
        parts = torch.arange(size, device=self.device).split(4096)
        loss = sum(float(self.model.loss(data.select(part)).mean()) * len(part) for part in parts) / size
        predicted = predict_all(self.model, data)
        report = evaluate(self.game, predicted, data.obs.float(), data)
        values = {"wm/validation/loss": loss}
        values |= {f"wm/validation/{name}": value for name, value in report.items() if name != "rows"}
        return values | self._channel_losses(predicted)

    def _channel_losses(self, predicted: Prediction) -> dict[str, float]:
        """dense: the same predictions under equal weights and under those of training, to compare their scale."""
        if not isinstance(self.model, DenseModel):
            return {}
        factors = {"unweighted_loss": (), "weighted_loss": self.config.channel_weights}
        return {
            f"wm/validation/{name}": float(
                dense_loss(predicted, self.validation, channel_factors(self.game, weights).to(self.device)).mean()
            )
            for name, weights in factors.items()
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "step": self.step, "total": self.total, "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(), "best_loss": self.best_loss, "best_step": self.best_step,
            "rngs": self.rngs.state_dict(), "order": self.order, "batches": self.batches, "summed": self.summed,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step, self.total = state["step"], state["total"]
        self.order = None if state["order"] is None else state["order"].cpu()
        self.batches, self.summed = state["batches"], state["summed"].to(self.device)
        self.best_loss, self.best_step = state["best_loss"], state["best_step"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rngs.load_state_dict(state["rngs"])


def pretrain_world(
    config: PretrainWorldConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Train (or resume), restore the best epoch, and measure it on every split.

    world_model.pt: the model. world_report.json: metrics per split, for validation and test also drift, for test also
    calibration and baselines. world_samples.pt: some unrounded predictions to look at. metrics.jsonl: every epoch.
    """
    with stage("reading the data", quiet=quiet):
        data = load_dataset(config.data)
        trainer = WorldTrainer(config, data)
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        if not quiet:
            print(header(data.game, transitions(data, "all", config.rows).size))
        store = CheckpointStore(run.checkpoints, CHECKPOINTS, "epoch_{step}.pt", Keep(last=1))
        run.add_stage("world model", lr=config.learning_rate, model=config.model, epochs=config.epochs)
        if run.budget.limited:
            run.budget.expect("figures", min(FIGURES_S, 0.1 * run.budget.limit_s))
        done = drive(trainer, run, store, save_every=1, unit="epochs", quiet=quiet, stay=True)
        with run.budget.part("figures"), stage("figures", quiet=quiet):
            rows = read_metrics(run.path / "metrics.jsonl")
            draw_losses(rows, run.figure("losses.png"), config.model)
            run.set_verdict(_so_far(rows, trainer), say("lab.go_on"))
        if done:
            _finish(run, store, trainer, data, quiet=quiet)
    return run


def _finish(run: Run, store: CheckpointStore, trainer: WorldTrainer, data: Dataset, *, quiet: bool) -> None:
    """The best epoch's model, measured on every split; between two splits the run may be left, to be resumed."""
    config, best = trainer.config, store.load_best()
    with building(best.path, "the state of this training"):
        trainer.model.load_state_dict(best.state["model"])
    trainer.model.eval()
    save_world_model(run.path / "world_model.pt", trainer.model, step=best.step)
    save_samples(run.path / "world_samples.pt", trainer.model, transitions(data, "test", config.rows))
    with Progress("measuring the model", unit="data sets", quiet=quiet) as bar:

        def part_done() -> None:
            bar.advance(1)
            if run.must_stop():
                run.leave()

        report = world_report(trainer.model, data, config.rows, part_done)
    report |= {"best_epoch": best.step, "epochs": trainer.step}
    write_json(run.path / "world_report.json", report)
    test = report["splits"]["test"]["metrics"]
    run.add_results(results_of_test(test))
    run.set_verdict(*verdict_of(report["splits"]["test"]))
    if not quiet:
        print(describe(data.game, "test split", test))


def _so_far(rows: Sequence[Mapping[str, Any]], trainer: WorldTrainer) -> Sentence:
    losses = [float(row["wm/validation/loss"]) for row in rows]
    if not losses:
        return say("hunt.no_epoch", total=trainer.total)
    return say("hunt.world_so_far", done=trainer.step, total=trainer.total, loss=min(losses), first=losses[0])


def verdict_of(split: Mapping[str, Any]) -> list[Sentence]:
    right, copy = (
        min(v for v in found["position_accuracy"] if v is not None)
        for found in (split["metrics"], split["baselines"]["copy_last_frame"])
    )
    count = split["metrics"]["rows"]
    _, low, high = share_interval(round(right * count), count)
    key = "world_helps" if low > copy else "world_useless"
    return [say(f"hunt.{key}", right=right, interval=(low, high), copy=copy), say("hunt.next_world")]


def draw_losses(rows: list[dict[str, Any]], path: Path, kind: ModelKind) -> None:
    """Loss over epochs, on the rows that it learns from and on held-out ones, and its errors on the latter."""
    figure, (left, right) = panels(1, 2, size=(7.2, 4.4), title="Training of the world model")
    shown = {"training rows": "wm/train/loss", "held-out rows": "wm/validation/loss"}
    series = {name: Curve(*column(rows, key)) for name, key in shown.items()}
    curves(left, series, xlabel="epoch", ylabel="loss (its own units)", title="loss")
    left.set_yscale("log")
    if kind == "dense":  # only there the original's figure measures the same thing
        reference_lines(left, {"original, weighted": sum(WORLD_LOSS) / len(WORLD_LOSS), "original, unweighted": 0.01})
    errors = {
        name: Curve(*column(rows, f"wm/validation/{key}"))
        for name, key in (("observation", "obs_mse"), ("reward", "reward_mse"))
    }
    curves(right, errors, xlabel="epoch", ylabel="validation MSE", title="errors")
    right.set_yscale("log")
    reference_lines(right, {"original, observation": WORLD_OBS_MSE})
    legends(left, right)
    save(figure, path)


def results_of_test(test: Mapping[str, Any]) -> dict[str, float]:
    """The figures that decide, for the lab note: the worst player's where there is one per player."""
    results = {f"test_{name}": test[name] for name in ("obs_mse", "reward_mse", "psnr_global")}
    results |= {f"test_{name}": _worst(test[name]) for name in ("teleport_rate", "vanish_rate", "ghost_rate")}
    return results | {"test_position_accuracy": min(v for v in test["position_accuracy"] if v is not None)}


def _worst(values: Sequence[float | None]) -> float:
    return max((v for v in values if v is not None), default=0.0)


def world_report(
    model: WorldModel, data: Dataset, rows: int = 0, part_done: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Everything measured about a model, split by split, beside predictors that know nothing."""
    device = next(model.parameters()).device
    train = transitions(data, "train", rows).to(device)
    report: dict[str, Any] = {
        "model": model.kind,
        "parameters": sum(p.numel() for p in model.parameters()),
        "header": header(data.game, transitions(data, "all", rows).size),
        "splits": {},
    }
    seen = evaluate(data.game, predict_all(model, train), train.obs.float(), train)
    report["splits"]["train"] = {"metrics": seen}
    part_done()
    for split in ("validation", "test"):
        part = transitions(data, split, rows).to(device)
        measured = evaluate_split(model, part)
        report["splits"][split] = {"metrics": measured.metrics, "drift": measured.drift}
        if split == "test":
            report["splits"][split] |= {
                "calibration": measured.calibration,
                "baselines": baselines(data.game, train, part),
            }
        part_done()
    return report


def save_samples(path: Path, model: WorldModel, data: Transitions, count: int = 12) -> None:
    """Some transitions with their unrounded predictions: half of them with a player leaving, evenly spread."""
    leaves = (data.outcome == LEAVE).any(1)
    chosen = torch.cat([_spread(leaves, count // 2), _spread(~leaves, count - count // 2)])
    row = data.select(chosen)
    device = next(model.parameters()).device
    predicted = predict_all(model, row.to(device))
    samples = {
        "row": chosen, "obs": row.obs, "joint": row.joint, "t": row.t, "next_obs": row.next_obs, "reward": row.reward,
        "done": row.done, "planes": predicted.planes.cpu(), "predicted_reward": predicted.reward.cpu(),
        "predicted_done": None if predicted.done is None else predicted.done.cpu(),
    }  # fmt: skip
    save_checkpoint(path, SAMPLES, 0, samples)


def _spread(which: Tensor, count: int) -> Tensor:
    """Up to `count` indices of marked rows, evenly spread over them."""
    index = which.nonzero().squeeze(1)
    if len(index) <= count:
        return index
    return index[torch.linspace(0, len(index) - 1, count).long()]
