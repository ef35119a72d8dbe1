"""`marlab hunt pretrain vae`: codes of what players want, and the model that predicts what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from marlab.hunt.data.dataset import Dataset, load_dataset
from marlab.hunt.others.data import Faults, goal_data, some_sequences
from marlab.hunt.others.floor import truth_of
from marlab.hunt.others.moa import Balance
from marlab.hunt.others.models import KIND, GoalSource, ModelSpec
from marlab.hunt.others.overfit import overfit_one_batch
from marlab.hunt.others.report import finish
from marlab.hunt.others.trainer import GoalTrainer, Splits
from marlab.hunt.others.vae import CODE_WIDTH, KL_SCHEDULES, Objective, ReconLoss
from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import write_json
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions, detach, run_path
from marlab.lab.runs.trainer import drive


@dataclass(frozen=True)
class PretrainGoalsConfig:
    """What to learn about other players, from which data."""

    KIND: ClassVar[str] = "hunt/goals"  # in run.json, so that other commands know what the run holds
    data: Path = Path()
    """Run directory of `marlab hunt collect`."""
    goal_source: GoalSource = "history"
    """Where a row's goal comes from: a code of the steps so far, a code of the situation alone, the player's true type,
    what it captured in the end, or no goal at all."""
    vae_loss: Objective = "joint"
    """What trains the autoencoder: reconstruction, prediction of actions, or both."""
    recon_loss: ReconLoss = "bce"
    """Reconstruction error of planes: cross-entropy, or the square error of the original."""
    recon_weight: float = 1.0
    """Weight of the reconstruction beside the prediction of actions."""
    kl_max: float | None = None
    """Largest weight of the KL term; by default that of the objective (1e-3, for `moa` 5e-5)."""
    kl_tau: float | None = None
    """Optimiser steps in which that weight rises to 63 %; by default that of the objective (1e4, for `moa` 2e4)."""
    heading_kl_max: float = 1e-5
    """History: largest weight of the pull towards the code of the situation that a player was heading for."""
    outcome_weight: float = 1.0
    """History: weight of foretelling from the code what the player will have captured in the end."""
    code_width: int = CODE_WIDTH
    """Numbers in a code."""
    horizon: int = 10
    """History: how many steps ahead the situation lies that a player is said to head for."""
    share_moa: bool = True
    """One network for all other players, told which one it looks at; otherwise one network for each."""
    class_balance: Balance = "sqrt"
    """How much more rare actions weigh in the loss: not, by the root of their rarity, or fully."""
    entropy_bonus: float = 0.0
    """Weight of the predictions' entropy, against over-confidence."""
    augment: bool = True
    """Turn and mirror the grid at random from step to step; rule-based players know no compass."""
    epochs: int = 10
    """Passes over the training rows, in all stages together."""
    vae_epochs: int = 2
    """History: how many of them train the autoencoder first."""
    batch: int = 256
    """Rows of an optimiser step (whole sequences with about as many rows in the history stage)."""
    lr: float = 2e-3
    """Adam step size."""
    grad_clip: float = 10.0
    """Largest norm of the gradient."""
    weight_decay: float = 1e-4
    """L2 penalty of the action predictor's weights."""
    overfit_check: bool = True
    """First see whether the predictor can learn one batch by heart."""
    belief_games: int = 128
    """Games in which beliefs with the finished models are measured; 0 leaves that out."""
    legacy_double_softmax: bool = False
    """Feed probabilities to the cross-entropy, as the original did."""
    legacy_global_prev_actions: bool = False
    """Give the history encoder actions in seat order beside ego-first planes, and keep those of players who left."""
    legacy_post_exit_rows: bool = False
    """Train also on rows of players who left, as if they stayed."""
    device: str = "cpu"
    """Where to compute: cpu, cuda, cuda:N, or auto for a GPU where there is one."""
    seed: int = 0
    """Seed of everything random."""

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch", 2), ("code_width", 1), ("horizon", 1), ("belief_games", 0)):
            if getattr(self, name) < least:
                raise UserError(f"{name} is {getattr(self, name)}, expected {least} or more.")
        for name in ("lr", "grad_clip"):
            if not getattr(self, name) > 0:
                raise UserError(f"{name} is {getattr(self, name):g}, expected a value above 0.")
        if self.goal_source == "history" and not 1 <= self.vae_epochs < self.epochs:
            raise UserError(
                f"vae_epochs is {self.vae_epochs} of {self.epochs} epochs; the history encoder needs at least one "
                "epoch of the autoencoder before it and one of its own."
            )

    @property
    def kl_schedule(self) -> tuple[float, float]:
        """(largest KL weight, time constant in steps)."""
        largest, tau = KL_SCHEDULES[self.vae_loss]
        return (largest if self.kl_max is None else self.kl_max), (tau if self.kl_tau is None else self.kl_tau)

    @property
    def faults(self) -> Faults:
        return Faults(self.legacy_global_prev_actions, self.legacy_post_exit_rows)


def pretrain(
    config: PretrainGoalsConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    quiet: bool = False,
) -> Path:
    """Train (or resume), evaluate and save the models; returns the run directory."""
    return _pretrain(config, options, preset=preset, quiet=quiet).path


def _pretrain(
    config: PretrainGoalsConfig,
    options: RunOptions | None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    dataset = load_goal_dataset(config)
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        trainer = make_trainer(config, dataset, run.path / "eval", run.log)
        store = CheckpointStore(run.checkpoints, KIND, "epoch_{step}.pt", Keep(last=2))
        run.add_stage(
            f"models of others ({config.goal_source})", lr=config.lr, epochs=config.epochs, batch=config.batch
        )
        if config.overfit_check and not run.resumed:
            _check_overfit(trainer, run)
        drive(trainer, run, store, save_every=1, unit="epochs", quiet=quiet)
        finish(run, store, trainer, dataset, quiet=quiet)
        if not quiet:
            print(f"run directory: {run.path}")
    return run


def _check_overfit(trainer: GoalTrainer, run: Run) -> None:
    """Note whether one batch can be learnt by heart; a predictor that cannot will not be worth its training."""
    report = overfit_one_batch(trainer.config, trainer.spec, trainer.data.train)
    told = {"loss": report.loss, "floor": report.floor, "steps": report.steps, "passed": report.passed}
    write_json(run.path / "eval" / "overfit.json", told)
    run.log(f"one batch by heart: loss {report.loss:.4f} nats after {report.steps} steps, {report.excess:.4f} above "
            f"the label noise: {'passed' if report.passed else 'FAILED'}")  # fmt: skip


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
    return ModelSpec(dataset.game, config.goal_source, config.code_width, config.share_moa)


def make_splits(config: PretrainGoalsConfig, dataset: Dataset) -> Splits:
    """The training rows with the faults that were asked for, and rows to judge by, where goals are true types."""
    game, faults, device = dataset.game, config.faults, choose_device(config.device)
    train, validation = dataset.part("train"), dataset.part("validation")
    shown = some_sequences(train, validation.rows.size, Rngs(config.seed).torch("shown"))
    judged = Faults(global_prev_actions=faults.global_prev_actions)
    return Splits(
        train=goal_data(game, train, config.goal_source, config.horizon, device, faults),
        shown=goal_data(game, shown, "type", config.horizon, device, judged),
        shown_truth=truth_of(game, shown),
        validation=goal_data(game, validation, "type", config.horizon, device, judged),
        validation_truth=truth_of(game, validation),
    )


def make_trainer(
    config: PretrainGoalsConfig,
    dataset: Dataset,
    folder: Path | None = None,
    say: Callable[[str], None] | None = None,
) -> GoalTrainer:
    """The trainer of a config; `folder` gets the evaluation files of every epoch."""
    return GoalTrainer(config, model_spec(config, dataset), make_splits(config, dataset), folder, say)


def main(argv: Sequence[str]) -> int:
    """`marlab hunt pretrain vae DATA [--goal-source history] ...`"""
    from marlab.lab.flags import parse_run

    parsed = parse_run(PretrainGoalsConfig, argv, prog="marlab hunt pretrain vae", positional=("data",))
    words = ["hunt", "pretrain", "vae", *argv]
    if parsed.options.background:
        path = run_path("hunt", parsed.config, parsed.options, parsed.preset)
        print(f"process {detach(words, path)} works in the background and logs to {path / 'log.txt'}")
        return 0
    return _pretrain(parsed.config, parsed.options, preset=parsed.preset, command=["marlab", *words]).exit_code
