"""`marlab market train`: the phases of offline learning one after the other, in one resumable run.

    l2   the day's goal from the morning's state          l2_bc_epoch{N}.pt, l2_bc_epoch{N}.ckpt.pt, l2_bc.pt
    l3   the expert's actions, told the trained L2's goal l3_bc_...
    awr  the same, better days weighing more              l3_awr_...
    l4   the teacher's weights of a round's threads       l4_distill_...

A phase's final weights are the best on the validation worlds, where there are any; every epoch's stay beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import write_json
from marlab.lab.runs.metrics import MetricsWriter
from marlab.lab.runs.run import Run, RunOptions, detach, run_path
from marlab.market.learn import evaluate
from marlab.market.learn import figures as imitate_figures
from marlab.market.learn.advantage import day_advantages
from marlab.market.learn.settings import PHASES, Phase, TrainSettings
from marlab.market.learn.tables import DayTable, DecisionTable, RoundTable
from marlab.market.learn.trainers import (
    NAMES,
    ActionTrainer,
    AdvantageTrainer,
    DayGoalTrainer,
    PhaseTrainer,
    WeightTrainer,
    new_coordinator,
    new_executor,
    new_manager,
)
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.manager import KIND as L2_KIND
from marlab.market.networks.manager import HorizonManagerPPO, find_manager
from marlab.market.networks.weights import (
    L3_KIND,
    L4_KIND,
    check_options,
    kind_of,
    load_manager,
    load_network,
    save_network,
)
from marlab.market.samples.dataset import Dataset, Samples, open_dataset
from marlab.market.samples.extract import with_goals
from marlab.market.samples.goals import GoalSource, check_network, predict_goals

MOST_ZERO_GOALS = 0.01
PRESETS = Path(__file__).parents[1] / "presets" / "train"


@dataclass(frozen=True)
class MarketTrainConfig(TrainSettings):
    """Learning of the four layers from samples."""

    data: Path = Path()
    """Run directory of `marlab market samples`, or the folder with its dataset.json."""
    phases: str = "l2,l3,l4"
    """Which of l2, l3, awr, l4 to do, in this order."""
    l3_goals: GoalSource = "l2"
    """Goals that L3 and L4 are told: of the trained L2, the day's label, or none."""
    l2_model_path: Path | None = None
    """L2 weights (or their folder) for the goals, where this run does not train L2 itself."""
    l3_model_path: Path | None = None
    """L3 weights that the phase awr starts from, where this run does not train L3 itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = self.chosen
        if not chosen:
            raise UserError("--phases names no phase, expected some of l2, l3, awr, l4.")
        needs_l2 = self.l3_goals == "l2" and any(phase != "l2" for phase in chosen)
        if needs_l2 and "l2" not in chosen and self.l2_model_path is None:
            raise UserError(
                "The goals of L3 and L4 come from L2: train it too (--phases l2,...) or give --l2-model-path."
            )
        if "awr" in chosen and "l3" not in chosen and self.l3_model_path is None:
            raise UserError("The phase awr starts from a cloned L3: add l3 to --phases or give --l3-model-path.")

    @property
    def chosen(self) -> list[Phase]:
        """The phases to do, in their fixed order."""
        asked = [part.strip() for part in self.phases.split(",") if part.strip()]
        for name in asked:
            if name not in PHASES:
                raise UserError(f"--phases names '{name}', expected some of {', '.join(PHASES)}.")
        return [phase for phase in PHASES if phase in asked]


def train(
    config: MarketTrainConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Path:
    """Train (or resume) all phases of a config; returns the run directory."""
    return _train(config, options, preset=preset, command=command, quiet=quiet).path


def _train(
    config: MarketTrainConfig,
    options: RunOptions | None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    if config.data == Path():
        raise UserError("Say what to learn from: the run directory of `marlab market samples` as --data.")
    dataset, device = open_dataset(config.data), choose_device(config.device)
    if "train" not in dataset.splits:
        raise UserError(f"{dataset.folder} has no split 'train', only {', '.join(dataset.splits)}.")
    with Run.open("market", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        work = _Work(config, run, dataset, device, quiet)
        for phase in config.chosen:
            work.do(phase)
        if not quiet:
            print(f"run directory: {run.path}")
    return run


class _Work:
    """The state of a run between its phases: what was trained, and the samples with their goals."""

    def __init__(
        self, config: MarketTrainConfig, run: Run, dataset: Dataset, device: torch.device, quiet: bool
    ) -> None:
        self.config, self.run, self.dataset, self.device, self.quiet = config, run, dataset, device, quiet
        self._goals_done = False
        self._splits: dict[str, Samples] = {}
        self.models: dict[str, nn.Module] = {}
        stores = {phase: self._store(phase) for phase in config.chosen}
        self._metrics: MetricsWriter = (
            run.metrics(resume_step=sum(max(s.steps(), default=0) for s in stores.values()))
            if run.resumed
            else run.metrics()
        )
        self._offset = 0  # epochs of earlier phases

    # --- samples ----------------------------------------------------------------------------------------------------

    def samples(self, split: str) -> Samples | None:
        """A split, with goals once they are known; None if the dataset has no rows of it."""
        if split not in self.dataset.splits:
            return None
        if split not in self._splits:
            self._splits[split] = self.dataset.split(split)
        found = self._splits[split]
        return found if found.rows("macro") else None

    def _fill_goals(self) -> None:
        """Give L3 and L4 the goals they will be told in play."""
        if self._goals_done:
            return
        source = self.config.l3_goals
        manager = self._manager() if source == "l2" else None
        for split in self.dataset.splits:
            samples = self.samples(split)
            if samples is None:
                continue
            if manager is not None:
                self._splits[split] = with_goals(samples, predict_goals(manager, samples.macro))
            elif source == "v2":
                self._splits[split] = with_goals(samples, np.asarray(samples.macro["label"]))
        self._goals_done = True
        empty = float((self._splits["train"].goals() == 0).all(1).mean()) if self._splits["train"].rows("micro") else 0
        if empty > MOST_ZERO_GOALS and not self.config.allow_zero_goal:
            raise UserError(
                f"{empty:.0%} of the decisions have a goal of zeros, so L3 would learn to ignore goals; choose "
                "--l3-goals l2 or v2, or say --allow-zero-goal."
            )

    def _manager(self) -> HorizonManagerPPO:
        if "l2" in self.models:
            return cast(HorizonManagerPPO, self.models["l2"])
        assert self.config.l2_model_path is not None
        path = find_manager(self.config.l2_model_path)
        manager = load_manager(path, self.device)
        check_network(path, manager, self.dataset.sizes, self.dataset.options)
        return manager

    # --- phases -----------------------------------------------------------------------------------------------------

    def do(self, phase: Phase) -> None:
        """Learn one phase (or take up where it stopped), write its weights and figures, and measure it."""
        if phase != "l2":
            self._fill_goals()
        trainer = self._trainer(phase)
        for number, stage in enumerate(self.config.stages(phase), 1):
            name = f"{NAMES[phase]} stage {number}"
            self.run.add_stage(
                name, lr=stage.lr, epochs=stage.epochs, batch=trainer.batch_size, rows=trainer.train.rows
            )
        learn(trainer, self.run, self._store(phase), self._metrics, self._offset, self.config.save_every, self.quiet)
        self._offset += trainer.total
        model = finish(trainer, self.run.checkpoints)
        self.models["l3" if phase == "awr" else phase] = model
        self._report(phase, model)

    def _trainer(self, phase: Phase) -> PhaseTrainer:
        config, device, sizes = self.config, self.device, self.dataset.sizes
        train, val = self.samples("train"), self.samples("val")
        if train is None:
            raise UserError(f"The split 'train' of {self.dataset.folder} is empty.")
        if phase == "l2":
            model: nn.Module = new_manager(config, sizes)
            made: PhaseTrainer = DayGoalTrainer(
                model, DayTable(train, device), DayTable(val, device) if val else None, config, device
            )
        elif phase == "l4":
            model = new_coordinator(config, sizes.horizon)
            made = WeightTrainer(
                model, RoundTable(train, device), RoundTable(val, device) if val else None, config, device
            )
        else:
            made = self._executor_trainer(phase, train, val)
        made.model.data = dict(self.dataset.options)  # type: ignore[assignment]
        return made

    def _executor_trainer(self, phase: Phase, train: Samples, val: Samples | None) -> PhaseTrainer:
        config, device, leaky = self.config, self.device, self.config.l3_leaky
        judged = DecisionTable(val, device, leaky=leaky) if val else None
        if phase == "l3":
            model = new_executor(config, self.dataset.sizes.horizon, self.dataset.sizes.partner)
            return ActionTrainer(model, DecisionTable(train, device, leaky=leaky), judged, config, device)
        start = self.models.get("l3")
        if start is None:
            assert config.l3_model_path is not None
            start = load_network(config.l3_model_path, L3_KIND, device)
            check_options(config.l3_model_path, start, self.dataset.options)
        advantage = day_advantages(train, config.gamma, config.seed)[train.micro["macro"]]
        table = DecisionTable(train, device, leaky=leaky, advantage=advantage)
        return AdvantageTrainer(start, table, judged, config, device)

    def _store(self, phase: Phase) -> CheckpointStore:
        kind = {"l2": L2_KIND, "l4": L4_KIND}.get(phase, L3_KIND)
        return CheckpointStore(self.run.checkpoints, kind, NAMES[phase] + "_epoch{step}.ckpt.pt", Keep(last=None))

    # --- reports ----------------------------------------------------------------------------------------------------

    def _report(self, phase: Phase, model: nn.Module) -> None:
        """Measure a trained layer on the validation and test worlds; JSON, figures and results of the run."""
        train = self.samples("train")
        assert train is not None
        majority = int(np.bincount(np.asarray(train.micro["op"], np.int64), minlength=3).argmax())
        for split in ("val", "test"):
            samples = self.samples(split)
            if samples is None:
                continue
            if isinstance(model, HorizonManagerPPO):
                found: dict[str, Any] = evaluate.evaluate_goals(model, samples, self.device)
                self.run.add_results(_goal_results(found, split))
            elif isinstance(model, GlobalCoordinator):
                found = evaluate.evaluate_weights(model, samples, self.device)
                self.run.add_results({f"L4 KL, {split}": found["kl"], f"L4 top-1, {split}": found["top1"]})
            else:
                leaky = self.config.l3_leaky
                found = evaluate.evaluate_actions(model, samples, self.device, majority, leaky=leaky)
                self.run.add_results(_action_results(found, split, phase))
                if split == "val" and phase == "l3":
                    advice = evaluate.plan_advice(found["L3"])
                    self.run.add_results({"plan E or F": advice})
                    if not self.quiet:
                        print(advice)
            write_json(self.run.path / "eval" / f"{NAMES[phase]}_{split}.json", found)
            if split == "val":
                imitate_figures.draw_phase(self.run, phase, model, samples, found, self.device, self.config.l3_leaky)
        imitate_figures.draw_losses(self.run, phase)


def _goal_results(found: dict[str, Any], split: str) -> dict[str, Any]:
    results = {}
    for part, unit in (("Q", "units"), ("P", "money")):
        low, high = found["L2"][part]["rmse_interval"]
        results[f"L2 {part} RMSE, {split}"] = {
            "value": found["L2"][part]["rmse"],
            "low": low,
            "high": high,
            "unit": unit,
        }
        for name in ("zero and spot", "gap only"):
            results[f"{name} {part} RMSE, {split}"] = {"value": found[name][part]["rmse"], "unit": unit}
    return results


def _action_results(found: dict[str, Any], split: str, phase: str) -> dict[str, Any]:
    label = "L3" if phase == "l3" else "L3 after AWR"
    results: dict[str, Any] = {}
    for key, unit in (("mae_q", "units"), ("mae_p", "money")):
        low, high = found["L3"][f"{key}_interval"]
        results[f"{label} {key}, {split}"] = {"value": found["L3"][key], "low": low, "high": high, "unit": unit}
        results[f"{label} {key} over best trivial, {split}"] = found["L3"][f"{key}_ratio"]
    results[f"{label} operator recall, {split}"] = found["L3"]["recall"]
    results[f"best trivial operator recall, {split}"] = found["L3"]["best_trivial_recall"]
    return results


# --- one phase ------------------------------------------------------------------------------------------------------


def learn(
    trainer: PhaseTrainer,
    run: Run,
    store: CheckpointStore,
    metrics: MetricsWriter,
    offset: int,
    save_every: int,
    quiet: bool,
) -> None:
    """Epochs until the phase is complete; leaves the run at a safe point when it should stop."""
    if run.resumed:
        checkpoint, problems = store.load_latest(trainer.device)
        for problem in problems:
            run.log(problem)
        if checkpoint is not None:
            trainer.load_state_dict(checkpoint.state)
    name = NAMES[trainer.phase]
    with Progress(name, total=trainer.total, done=trainer.step, unit="epochs", quiet=quiet) as bar:
        while trainer.step < trainer.total and not trainer.stopped:
            values = trainer.iterate()
            metrics.log(offset + trainer.step, values)
            shown = values.get(f"{name}/val/loss", values[f"{name}/train/loss"])
            bar.show(loss=shown)
            bar.advance(1)
            stopping = run.should_stop()
            last = trainer.step == trainer.total or trainer.stopped
            better = trainer.best is not None and trainer.best[0] == trainer.step
            if stopping or last or better or trainer.step % save_every == 0:
                save_epoch(trainer, store)
            if stopping and not last:
                run.leave()


def save_epoch(trainer: PhaseTrainer, store: CheckpointStore) -> None:
    """The checkpoint of an epoch, its bare weights, and the best weights so far if these are they."""
    store.save(trainer.step, trainer.state_dict())
    name = NAMES[trainer.phase]
    save_network(store.folder / f"{name}_epoch{trainer.step}.pt", trainer.model, trainer.step)
    if trainer.best is not None and trainer.best[0] == trainer.step:
        save_network(store.folder / f"{name}_best.pt", trainer.model, trainer.step)


def finish(trainer: PhaseTrainer, folder: Path) -> nn.Module:
    """Write the final weights of a phase, the best on validation where there was one, and return that network."""
    name, best = NAMES[trainer.phase], folder / f"{NAMES[trainer.phase]}_best.pt"
    model = trainer.model
    if trainer.best is not None and best.exists():
        model = load_network(best, kind_of(trainer.model), trainer.device)
    save_network(folder / f"{name}.pt", model, trainer.step)
    return model.eval()


def main(argv: Sequence[str]) -> int:
    """`marlab market train SAMPLES --phases l2,l3,l4 ...`"""
    from marlab.lab.flags import OldFlags, parse_run

    parsed = parse_run(
        MarketTrainConfig, argv, prog="marlab market train", positional=("data",), presets=PRESETS,
        old=OldFlags(renamed=RENAMED, refused=REFUSED),
    )  # fmt: skip
    words = ["market", "train", *argv]
    if parsed.options.background:
        path = run_path("market", parsed.config, parsed.options, parsed.preset)
        print(f"process {detach(words, path)} works in the background and logs to {path / 'log.txt'}")
        return 0
    return _train(parsed.config, parsed.options, preset=parsed.preset, command=["marlab", *words]).exit_code


RENAMED = dict.fromkeys(("l3_goal_backfill", "l4_goal_source"), ("--l3-goals",))
_SAMPLES = "samples are made once, by `marlab market samples`, with its own options"
_LOADING = "samples are memory-mapped and need no loader processes"
REFUSED = {
    **dict.fromkeys(
        ("tournament_dir", "agent_name", "num_workers", "stats_only", "stats_sample", "allow_csv", "val_ratio",
         "test_ratio", "split_seed", "regen_split"), _SAMPLES,
    ),
    **dict.fromkeys(
        ("l3_pre_tensorize", "tensorize_workers", "dataloader_workers", "dataloader_pin_memory",
         "dataloader_persistent_workers", "dataloader_prefetch_factor", "dataloader_drop_last"), _LOADING,
    ),
    "l3_awr": "name the phase awr in --phases",
    "no_resume": "a run continues only with --resume",
    "l2_backfill_device": "goals are filled in on --device",
    "l2_backfill_batch_size": "goals are filled in on --device, in batches that fit",
    "backfill_world_chunk": "goals are filled in on --device, in batches that fit",
    "batch_log_every": "metrics.jsonl has every epoch",
    "no_progress_bar": "output that is not a terminal has plain lines by itself",
}  # fmt: skip
