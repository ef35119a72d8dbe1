"""The phases of offline learning one after the other, in one resumable run (`marlab market train`).

    l2   the day's goal from the morning's state          l2_bc_epoch{N}.pt, l2_bc_epoch{N}.ckpt.pt, l2_bc.pt
    l3   the expert's actions, told the trained L2's goal l3_bc_...
    awr  the same, better days weighing more              l3_awr_...
    l4   the teacher's weights of a round's threads       l4_distill_...

A phase's final weights are the best on the validation worlds, where there are any; every epoch's stay beside them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.progress import stage
from marlab.lab.report.style import time_of_a_figure
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import write_json
from marlab.lab.runs.metrics import MetricsWriter
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.verdict import say
from marlab.market.learn import evaluate, figures
from marlab.market.learn.advantage import Expectation, check_rewards
from marlab.market.learn.command import MarketTrainConfig, TrainCommand
from marlab.market.learn.judge import verdict
from marlab.market.learn.settings import NAMES, Phase
from marlab.market.learn.trainers import TRAINERS, PhaseTrainer, new_coordinator, new_executor, new_manager
from marlab.market.networks import weights
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.manager import KIND as L2_KIND
from marlab.market.networks.manager import HorizonManagerPPO, find_manager
from marlab.market.networks.weights import L3_KIND, L4_KIND, load_network, save_network
from marlab.market.samples.dataset import Dataset, Samples, open_dataset
from marlab.market.samples.goals import check_network, fill_goals, refuse_zero_goals

PASSES, FIGURES = 4.0, 8
"""Measuring a layer takes about as long as so many passes over the validation rows and so many figures."""


def train(
    config: MarketTrainConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Train (or resume) all phases of a config; returns the run, closed."""
    if isinstance(config, TrainCommand):
        asked, config = config, config.run_config()
        if asked.logs:
            _make_samples(asked, config.data, quiet)
    dataset, device = open_dataset(config.data), choose_device(config.device)
    if "train" not in dataset.splits:
        raise UserError(f"{dataset.folder} has no split 'train', only {', '.join(dataset.splits)}.")
    if "awr" in config.chosen:
        check_rewards(dataset.split("train").macro, f"the samples in {dataset.folder}")
    with Run.open("market", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        work = _Work(config, run, dataset, device, quiet)
        for phase in config.chosen:
            if run.must_stop():
                run.stop()
            if run.unfinished or not work.do(phase):
                break
        judge(run)
    return run


def _make_samples(asked: TrainCommand, folder: Path, quiet: bool) -> None:
    """The samples of --logs, unless the same command made them before."""
    if (folder / "data" / "dataset.json").exists():
        return
    from marlab.market.samples.make import make_samples

    options = RunOptions(output_dir=folder, resume=(folder / "run.json").exists())
    make_samples(asked.samples_config(), options, engine=EngineConfig(workers=asked.workers or None), quiet=quiet)


def judge(run: Run) -> None:
    """The verdict, from the results of the run."""
    next_ = say("lab.go_on") if run.unfinished else say("market.next_play")
    run.set_verdict(*verdict(run.results), next_)


def draw_again(run: Run, config: MarketTrainConfig, quiet: bool) -> None:
    """Every phase that has weights measured and drawn again; needs the samples that it learnt from."""
    work = _Work(config, run, open_dataset(config.data), choose_device("auto"), quiet)
    for phase in config.chosen:
        if not work.measure_again(phase):
            break
    judge(run)


class _Work:
    """The state of a run between its phases: what was trained, and the samples with their goals."""

    def __init__(
        self, config: MarketTrainConfig, run: Run, dataset: Dataset, device: torch.device, quiet: bool
    ) -> None:
        self.config, self.run, self.dataset, self.device, self.quiet = config, run, dataset, device, quiet
        self._goals_done = False
        self._splits: dict[str, Samples] = {}
        self.models: dict[str, nn.Module] = {}
        self._offset = 0  # epochs of earlier phases
        self._learnt_anew: list[str] = []  # phases that went on in a run that goes on

    @cached_property
    def _metrics(self) -> MetricsWriter:
        done = sum(max(self._store(phase).steps(), default=0) for phase in self.config.chosen)
        return self.run.metrics(resume_step=done) if self.run.resumed else self.run.metrics()

    def samples(self, split: str) -> Samples | None:
        """A split, with goals once they are known; None if the dataset has no rows of it."""
        if split not in self.dataset.splits:
            return None
        if split not in self._splits:
            self._splits[split] = self.dataset.split(split)
        samples = self._splits[split]
        return samples if samples.rows("macro") else None

    def _fill_goals(self) -> None:
        """Give L3 and L4 the goals they will be told in play."""
        if self._goals_done:
            return
        source = self.config.l3_goals
        network = self._manager() if source == "l2" else None
        for split in self.dataset.splits:
            samples = self.samples(split)
            if samples is not None:
                self._splits[split] = fill_goals(samples, source, network)
        self._goals_done = True
        if not self.config.allow_zero_goal:
            refuse_zero_goals(self._splits["train"], "choose --l3-goals l2 or v2, or say --allow-zero-goal")

    def _manager(self) -> HorizonManagerPPO:
        if "l2" in self.models:
            return cast(HorizonManagerPPO, self.models["l2"])
        assert self.config.l2_model_path is not None
        path = find_manager(self.config.l2_model_path)
        manager = weights.load_manager(path, self.device)
        check_network(path, manager, self.dataset.sizes, self.dataset.options)
        return manager

    def do(self, phase: Phase) -> bool:
        """Learn one phase (or take up where it stopped), write its weights and figures, and measure it; False if the
        run has to stop before the phase is finished. What was learnt until then is measured all the same."""
        if phase != "l2":
            self._fill_goals()
        trainer = self._trainer(phase)
        for number, part in enumerate(self.config.stages(phase), 1):
            name = f"{NAMES[phase]} stage {number}"
            self.run.add_stage(name, lr=part.lr, epochs=part.epochs, batch=trainer.batch_size, rows=trainer.train.rows)
        name, folder = NAMES[phase], self.run.checkpoints
        done = max(self._store(phase).steps(), default=0)
        self._keep_time(trainer)
        complete = drive(
            trainer, self.run, self._store(phase), save_every=self.config.save_every, unit="epochs", name=name,
            show=(f"{name}/train/loss", f"{name}/val/loss"), quiet=self.quiet, metrics=self._metrics,
            first_step=self._offset, on_save=lambda: save_weights(trainer, folder), device=self.device, stay=True,
        )  # fmt: skip
        if not complete and self.run.signalled:
            return False
        self._offset += trainer.total
        self._note_what_is_older(phase, done, trainer)
        model = finish(trainer, self.run.checkpoints) if complete else best_so_far(trainer, folder)
        self.models["l3" if phase == "awr" else phase] = model
        with self.run.budget.part("measuring"), stage(f"{name}: measuring", self.quiet):
            self._report(phase, model)
        return complete

    def measure_again(self, phase: Phase) -> bool:
        """Measure the weights that a phase has left; False if there are none."""
        names = (f"{NAMES[phase]}.pt", f"{NAMES[phase]}_best.pt")
        file = next((path for name in names if (path := self.run.checkpoints / name).exists()), None)
        if file is None:
            return False
        if phase != "l2":
            self._fill_goals()
        model = load_network(file, _kind(phase), self.device).eval()
        self.models["l3" if phase == "awr" else phase] = model
        self._report(phase, model)
        return True

    def _keep_time(self, trainer: PhaseTrainer) -> None:
        """Under a time limit: what measuring the layer will take, from one pass over the validation rows."""
        if not self.run.budget.limited:
            return
        with stage("planning the end", self.quiet):
            began = time.monotonic()
            if trainer.val is not None and trainer.val.rows:
                trainer.measure(trainer.val)
            passes = time.monotonic() - began
            self.run.budget.expect("measuring", PASSES * passes + FIGURES * time_of_a_figure())

    def _note_what_is_older(self, phase: Phase, done: int, trainer: PhaseTrainer) -> None:
        """A layer that was finished before the one above it learnt on has learnt from other goals or weights."""
        if trainer.step > done:
            self._learnt_anew.append(NAMES[phase])
        elif done and self._learnt_anew:
            older = f"{NAMES[phase]} learnt before {' and '.join(self._learnt_anew)} went on; to train it anew, start"
            self.run.log(f"{older} a run with --phases {phase} and --l2-model-path {self.run.path}.")
            if not self.quiet:
                print(f"{older} a run with --phases {phase} and --l2-model-path {self.run.path}.")

    def _begun(self, phase: Phase) -> nn.Module | None:
        """The network that a phase is told to begin with."""
        path: Path | None = getattr(self.config, f"{phase}_start_path", None)
        if path is None:
            return None
        start = load_network(find_manager(path) if phase == "l2" else path, _kind(phase), self.device)
        weights.check_options(path, start, self.dataset.options)
        return start

    def _trainer(self, phase: Phase) -> PhaseTrainer:
        config, device, sizes = self.config, self.device, self.dataset.sizes
        kind = TRAINERS[phase]
        train, val = self.samples("train"), self.samples("val")
        if train is None:
            raise UserError(f"The split 'train' of {self.dataset.folder} is empty.")
        advantage = judged_by = None
        if phase == "l2":
            model: nn.Module = self._begun(phase) or new_manager(config, sizes)
        elif phase == "l4":
            model = self._begun(phase) or new_coordinator(config, sizes.horizon)
        elif phase == "l3":
            model = self._begun(phase) or new_executor(config, sizes.horizon, sizes.partner)
        else:
            model = self._cloned()
            usual = Expectation(train.macro, config.gamma, config.seed)
            advantage = usual.advantages(train.macro)[train.micro["macro"]]
            judged_by = usual.advantages(val.macro)[val.micro["macro"]] if val else None
            if judged_by is not None and not np.isfinite(judged_by).any():
                self.run.log("no day of the validation worlds has a reward: epochs of awr are judged by cloning loss")
                judged_by = None
        judged = kind.table(val, device, judged_by) if val else None
        made = kind(model, kind.table(train, device, advantage), judged, config, device)
        made.model.data = dict(self.dataset.options)  # type: ignore[assignment]
        return made

    def _cloned(self) -> nn.Module:
        """The L3 network that the phase awr starts from."""
        path = self.config.l3_model_path
        if "l3" in self.models:
            return self.models["l3"]
        assert path is not None
        start = load_network(path, L3_KIND, self.device)
        weights.check_options(path, start, self.dataset.options)
        return start

    def _store(self, phase: Phase) -> CheckpointStore:
        return CheckpointStore(
            self.run.checkpoints, _kind(phase), NAMES[phase] + "_epoch{step}.ckpt.pt", Keep(last=None)
        )

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
                report: dict[str, Any] = evaluate.evaluate_goals(model, samples, self.device)
                self.run.add_results(_goal_results(report, split))
            elif isinstance(model, GlobalCoordinator):
                report = evaluate.evaluate_weights(model, samples, self.device)
                self.run.add_results({f"L4 KL, {split}": report["kl"], f"L4 top-1, {split}": report["top1"]})
            else:
                report = evaluate.evaluate_actions(model, samples, self.device, majority)
                self.run.add_results(_action_results(report, split, phase))
                if split == "val" and phase == "l3":
                    advice = evaluate.plan_advice(report["L3"])
                    self.run.add_results({"plan E or F": advice})
                    if not self.quiet:
                        print(advice)
            write_json(self.run.path / "eval" / f"{NAMES[phase]}_{split}.json", report)
            if split == "val":
                figures.draw_phase(self.run, phase, model, samples, report, self.device)
        figures.draw_losses(self.run, phase)


def _kind(phase: Phase) -> str:
    return {"l2": L2_KIND, "l4": L4_KIND}.get(phase, L3_KIND)


def _goal_results(found: dict[str, Any], split: str) -> dict[str, Any]:
    results = {}
    for part, unit in (("Q", "units"), ("P", "money")):
        low, high = found["L2"][part]["rmse_interval"]
        value = found["L2"][part]["rmse"]
        results[f"L2 {part} RMSE, {split}"] = {"value": value, "low": low, "high": high, "unit": unit}
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


def save_weights(trainer: PhaseTrainer, folder: Path) -> None:
    """The bare weights of an epoch, and once more as the best so far if they are."""
    name = NAMES[trainer.phase]
    save_network(folder / f"{name}_epoch{trainer.step}.pt", trainer.model, trainer.step)
    if trainer.improved:
        save_network(folder / f"{name}_best.pt", trainer.model, trainer.step)


def finish(trainer: PhaseTrainer, folder: Path) -> nn.Module:
    """Write the final weights of a phase, the best on validation where there was one, and return that network."""
    model = best_so_far(trainer, folder)
    save_network(folder / f"{NAMES[trainer.phase]}.pt", model, trainer.step)
    return model


def best_so_far(trainer: PhaseTrainer, folder: Path) -> nn.Module:
    """The network that was best on validation, or the newest where nothing was validated."""
    best = folder / f"{NAMES[trainer.phase]}_best.pt"
    model = trainer.model
    if trainer.best is not None and best.exists():
        model = load_network(best, weights.kind_of(trainer.model), trainer.device)
    return model.eval()
