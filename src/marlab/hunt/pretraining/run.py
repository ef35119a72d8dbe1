"""`marlab hunt pretrain vae`: codes of what players want, and the model that predicts what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from marlab.hunt.data.dataset import Dataset, load_dataset
from marlab.hunt.others.config import CODE_WIDTH, PretrainGoalsConfig
from marlab.hunt.others.moa import Moa, action_loss
from marlab.hunt.others.models import FILE, KIND, LoadedModels, ModelSpec, save_goal_models
from marlab.hunt.pretraining.belief_report import belief_figures
from marlab.hunt.pretraining.data import GoalData, goal_data, some_sequences
from marlab.hunt.pretraining.figures import draw_epochs, draw_figures, draw_losses
from marlab.hunt.pretraining.floor import truth_of
from marlab.hunt.pretraining.judge import describe, final_verdict, judge, results_of
from marlab.hunt.pretraining.trainer import OthersTrainer, Splits
from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress, stage
from marlab.lab.runs.checkpoint import CheckpointStore, Keep, building
from marlab.lab.runs.files import plain_json, read_json, write_json
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Interrupted, Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.stats import share_interval
from marlab.lab.verdict import say

ROWS = 256
LR = 3e-3
FIGURES_S = 6.0
"""Kept back of a time limit for the figures."""
LIMIT = 0.01
"""Nats above the label noise at which a batch counts as learnt."""


@dataclass(frozen=True)
class Overfit:
    """What came of learning one batch by heart."""

    loss: float  # nats, as the loss function reports it
    floor: float  # nats, noise of the labels: the same situation and goal with different actions
    steps: int

    @property
    def excess(self) -> float:
        return self.loss - self.floor

    @property
    def passed(self) -> bool:
        return self.excess < LIMIT


def overfit_one_batch(
    config: PretrainGoalsConfig, spec: ModelSpec, data: GoalData, rows: int = ROWS, most_steps: int = 400
) -> Overfit:
    """Train a fresh predictor on the same few rows until it knows them, with the loss that the training uses.

    Codes are left out (all zero): what is tested is the predictor, its inputs and its loss.
    """
    device = data.planes.device
    rngs = Rngs(config.seed, device)
    moa = Moa(spec.game, spec.goal_width, spec.hidden, [rngs.torch("overfit init", "cpu")], paths=spec.paths)
    moa.to(device)
    picked = torch.randperm(data.rows, generator=rngs.torch("overfit", "cpu"))[:rows].to(device)
    seen, mask, time, action = (x[picked] for x in (data.seen, data.mask, data.time, data.action))
    goals, weight = _goals(spec, data, picked)
    floor = label_noise(data.planes[picked], data.goal[picked] if weight is not None else None, action)
    optimiser = torch.optim.Adam(moa.parameters(), LR)
    loss, step = float("inf"), 0
    for step in range(1, most_steps + 1):
        given, _ = moa.rows(seen, time, goals, data.slot[picked])
        loss_parts = action_loss(
            given, None, action, mask, weight, balance="none", legacy_double_softmax=config.legacy_double_softmax
        )
        optimiser.zero_grad(set_to_none=True)
        loss_parts.total.backward()
        optimiser.step()
        if step % 20 == 0:
            loss = loss_parts.given.item()
            if loss - floor < LIMIT:
                break
    return Overfit(loss, floor, step)


def _goals(spec: ModelSpec, data: GoalData, rows: Tensor) -> tuple[Tensor, Tensor | None]:
    if spec.goal_source in ("type", "outcome"):
        return torch.eye(2, device=rows.device).expand(len(rows), 2, 2), data.goal[rows]
    return torch.zeros(len(rows), 1, spec.goal_width, device=rows.device), None


def label_noise(planes: Tensor, goal: Tensor | None, action: Tensor) -> float:
    """Mean entropy of the actions [R] among rows with the same situation and goal, in nats.

    The time does not count: a player that wanders on one spot acts differently from step to step without a reason.
    """
    seen = planes.flatten(1).float()
    _, group = torch.unique(seen if goal is None else torch.cat([seen, goal], 1), dim=0, return_inverse=True)
    _, pair, size = torch.unique(torch.stack([group, action], 1), dim=0, return_inverse=True, return_counts=True)
    return float((torch.bincount(group)[group] / size[pair]).log().mean())


def pretrain_goals(
    config: PretrainGoalsConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Train (or resume), evaluate and save the models."""
    with stage("reading the data", quiet=quiet):
        dataset = load_goal_dataset(config)
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        with stage("goals and exact predictions", quiet=quiet):
            trainer = make_trainer(config, dataset, run.path / "eval", run.log)
        store = CheckpointStore(run.checkpoints, KIND, "epoch_{step}.pt", Keep(last=2))
        run.add_stage(
            f"models of others ({config.goal_source})",
            lr=config.learning_rate,
            epochs=config.epochs,
            batch_size=config.batch_size,
        )
        if config.overfit_check and not (run.path / "eval" / "overfit.json").exists():
            with stage("one batch by heart", quiet=quiet):
                _check_overfit(trainer, run)
        if run.budget.limited:
            run.budget.expect("figures", min(FIGURES_S, 0.1 * run.budget.limit_s))
        try:
            if drive(trainer, run, store, save_every=1, unit="epochs", quiet=quiet, stay=True):
                run.set_verdict(*final_verdict(finish(run, store, trainer, dataset, quiet=quiet)))
            else:
                _conclude_stopped(run, trainer, quiet=quiet)
        except Interrupted:
            _conclude_stopped(run, trainer, quiet=quiet)
            raise
    return run


def finish(
    run: Run, store: CheckpointStore, trainer: OthersTrainer, dataset: Dataset, *, quiet: bool = False
) -> dict[str, Any]:
    """Take the best epoch's models, judge them on all splits, and write everything down; returns what was found.

    models.pt holds the averaged weights of the best epoch and the codebook, eval/final.json everything that was found,
    eval/codes.parquet the codes of the validation rows. Between its parts the run may be left, and a resumed one does
    them again.
    """
    best, config = store.load_best(trainer.device), trainer.config
    with building(best.path, "the state of this training"):
        trainer.load_state_dict(best.state)
    with Progress("judging the models", unit="parts", quiet=quiet) as bar:

        def part_done() -> None:
            bar.advance(1)
            if run.must_stop():
                run.leave()

        codes = run.path / "eval" / "codes.parquet"
        found, codebook = judge(trainer.averaged, dataset, config.horizon, config.seed, codes, part_done)
        learnt = trainer.data.train.rows
        clean = int((dataset.split_of == 0).repeat_interleave(dataset.offsets.diff()).sum())
        found["data"] = {"rows": dataset.rows.size, "training_rows": learnt, "post_exit_share": 1.0 - clean / learnt}
        found["epoch"] = best.step - 1
        save_goal_models(run.path / FILE, trainer.averaged, codebook, best.step - 1)
        loaded = LoadedModels(trainer.averaged.eval(), codebook, best.step - 1)
        if config.belief_games and loaded.has_goals:
            found["belief"] = belief_figures(loaded, dataset, config.belief_games, config.seed)
            part_done()
        overfit = run.path / "eval" / "overfit.json"
        if overfit.exists():
            found["overfit"] = read_json(overfit, UserError)
        write_json(run.path / "eval" / "final.json", plain_json(found))
        run.add_results(results_of(found))
        draw_figures(run, found, config.vae_loss)
    if not quiet:
        print(describe(found))
    return found


def _conclude_stopped(run: Run, trainer: OthersTrainer, *, quiet: bool) -> None:
    """Curves, results of the best epoch so far, and a verdict, from what every epoch has measured."""
    rows, judged = read_metrics(run.path / "metrics.jsonl"), "moa/validation/"
    with run.budget.part("figures"), stage("figures", quiet=quiet):
        if rows:
            draw_losses(run, rows, trainer.config.vae_loss)
            draw_epochs(run, rows, {})
    best = best_epoch(rows)
    if best is None:
        run.set_verdict(say("hunt.no_epoch", total=trainer.total), say("lab.go_on"))
        return
    found = {key: best[judged + name] for key, name in (("top1", "top1"), ("top3", "top3"), ("cross_entropy", "ce"))}
    run.add_results({"best_epoch": best["step"] - 1, **{f"validation_{key}": value for key, value in found.items()}})
    count, without = trainer.data.validation.rows, best.get(f"{judged}free_top1")
    top1, low, high = share_interval(round(found["top1"] * count), count)
    so_far = {"done": trainer.step, "total": trainer.total, "top1": top1, "interval": (low, high), "without": without}
    run.set_verdict(say("hunt.models_so_far", **so_far), say("lab.go_on"))


def best_epoch(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The epoch with the lowest cross-entropy on held-out rows."""
    known = (row for row in rows if "moa/validation/ce" in row)
    return min(known, key=lambda row: float(row["moa/validation/ce"]), default=None)


def _check_overfit(trainer: OthersTrainer, run: Run) -> None:
    """Note whether one batch can be learnt by heart; a predictor that cannot will not be worth its training."""
    report = overfit_one_batch(trainer.config, trainer.spec, trainer.data.train)
    outcome = {"loss": report.loss, "floor": report.floor, "steps": report.steps, "passed": report.passed}
    write_json(run.path / "eval" / "overfit.json", outcome)
    run.log(
        f"one batch by heart: loss {report.loss:.4f} nats after {report.steps} steps, {report.excess:.4f} above "
        f"the label noise: {'passed' if report.passed else 'FAILED'}"
    )


def load_goal_dataset(config: PretrainGoalsConfig) -> Dataset:
    """The data set of a config; everything that does not fit it is refused here."""
    if config.data == Path():
        raise UserError("Say which data to learn from: the run directory of `marlab hunt collect` as --data.")
    dataset = load_dataset(config.data)
    if dataset.game.players < 2:
        raise UserError(f"The data set {config.data} has one player; a model of others needs at least two.")
    choose_device(config.device)
    return dataset


def model_spec(config: PretrainGoalsConfig, dataset: Dataset) -> ModelSpec:
    return ModelSpec(dataset.game, config.goal_source, CODE_WIDTH, config.hidden, config.paths)


def make_splits(config: PretrainGoalsConfig, dataset: Dataset) -> Splits:
    """The training rows with the faults that were asked for, and rows to judge by, where goals are true types."""
    game, device = dataset.game, choose_device(config.device)
    train, validation = dataset.part("train"), dataset.part("validation")
    shown = some_sequences(train, validation.rows.size, Rngs(config.seed).torch("shown"))
    return Splits(
        train=goal_data(
            game, train, config.goal_source, config.horizon, device, config.paths, config.legacy_post_exit_rows
        ),
        shown=goal_data(game, shown, "type", config.horizon, device, config.paths),
        shown_truth=truth_of(game, shown),
        validation=goal_data(game, validation, "type", config.horizon, device, config.paths),
        validation_truth=truth_of(game, validation),
    )


def make_trainer(
    config: PretrainGoalsConfig, dataset: Dataset, folder: Path | None = None, say: Callable[[str], None] | None = None
) -> OthersTrainer:
    """The trainer of a config; `folder` gets the evaluation files of every epoch."""
    return OthersTrainer(config, model_spec(config, dataset), make_splits(config, dataset), folder, say)
