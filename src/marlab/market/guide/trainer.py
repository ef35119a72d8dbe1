"""Offline learning under the names of the training guide.

    trainer = HRLXFTrainer(l2, l3, None, TrainConfig(l2_epochs=10, l3_epochs=10, output_dir="out"))
    trainer.train_phase0_bc(macro, micro)
    save_model(l2, "out", "l2_bc.pt")

The lists come from `load_tournament_data`, or are lists of its records. `marlab market train` does the same on a
dataset, with splits, evaluation and resumption of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from torch import nn

from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from marlab.lab.runs.trainer import loop
from marlab.market.learn.advantage import day_advantages
from marlab.market.learn.settings import Phase, TrainConfig
from marlab.market.learn.trainers import NAMES, TRAINERS, PhaseTrainer
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import TemporalDecisionTransformer
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import kind_of, load_network, save_network
from marlab.market.samples.dataset import Columns, Samples, empty
from marlab.market.samples.goals import refuse_zero_goals
from marlab.market.samples.options import Sizes
from marlab.market.samples.records import L4Samples, MacroSamples, MicroSamples, SampleList

History = list[dict[str, float]]


class HRLXFTrainer:
    """Trains the layers it is given; the others may be None."""

    def __init__(
        self, l2: HorizonManagerPPO | None, l3: TemporalDecisionTransformer | None, l4: GlobalCoordinator | None,
        config: TrainConfig,
    ) -> None:  # fmt: skip
        for name, model in (("L2", l2), ("L3", l3), ("L4", l4)):
            if model is not None and model.options["horizon"] != config.horizon:
                looks = model.options["horizon"]
                raise UserError(f"{name} looks {looks} days ahead, the config {config.horizon}; make them equal.")
        self.l2, self.l3, self.l4, self.config = l2, l3, l4, config
        self.device = choose_device(config.device)
        self.folder = Path(config.output_dir)

    def train_phase0_bc(self, macro: Sequence[Any], micro: Sequence[Any]) -> dict[str, History]:
        """Behaviour cloning: of L2 if there are days, of L3 if there are decisions."""
        histories: dict[str, History] = {}
        if len(macro):
            histories["l2"] = self._learn("l2", self.l2, _days(macro), self.config.l2_resume_path)
        if len(micro):
            samples = _decisions(micro)
            if not self.config.allow_zero_goal:
                refuse_zero_goals(samples, "load them with goal_backfill l2 or v2, or set allow_zero_goal")
            histories["l3"] = self._learn("l3", self.l3, samples, self.config.l3_bc_resume_path)
        return histories

    def train_phase1_awr(self, micro: Sequence[Any]) -> dict[str, History]:
        """L3 again, decisions of days that went well weighing more; without returns it is behaviour cloning."""
        samples = _decisions(micro)
        try:
            advantage = day_advantages(samples, self.config.gamma, self.config.seed)[samples.micro["macro"]]
        except UserError as error:
            print(f"{error} Every decision counts the same.")
            advantage = np.zeros(samples.rows("micro"), np.float32)
        return {"awr": self._learn("awr", self.l3, samples, self.config.l3_awr_resume_path, advantage)}

    def train_l4_distill(self, samples: Sequence[Any]) -> dict[str, History]:
        """L4 learns the teacher's weights."""
        return {"l4": self._learn("l4", self.l4, _rounds(samples), self.config.l4_resume_path)}

    def save_all(self, suffix: str) -> list[Path]:
        """Write l2_<suffix>.pt, l3_<suffix>.pt and l4_<suffix>.pt of the layers there are."""
        made = []
        for name, model in (("l2", self.l2), ("l3", self.l3), ("l4", self.l4)):
            if model is not None:
                made.append(save_model(model, self.folder, f"{name}_{suffix}.pt"))
        return made

    def _learn(
        self, phase: Phase, model: nn.Module | None, samples: Samples, resume: str | Path | None,
        advantage: np.ndarray[Any, Any] | None = None,
    ) -> History:  # fmt: skip
        if model is None:
            raise UserError(f"The trainer was made without the network that {NAMES[phase]} trains.")
        table = TRAINERS[phase].table(samples, self.device, self.config.l3_leaky, advantage)
        trainer = TRAINERS[phase](model, table, None, self.config, self.device)
        if resume is not None:
            trainer.load_state_dict(load_checkpoint(Path(resume), kind_of(model), self.device).state)
        history: History = []
        loop(
            trainer, log=lambda values: history.append(dict(values)), save=lambda _: self._save(trainer),
            save_every=self.config.save_every,
        )  # fmt: skip
        save_network(self.folder / f"{NAMES[phase]}.pt", model, trainer.step)
        model.eval()
        return history

    def _save(self, trainer: PhaseTrainer) -> None:
        stem = self.folder / f"{NAMES[trainer.phase]}_epoch{trainer.step}"
        save_checkpoint(
            stem.with_name(stem.name + ".ckpt.pt"), kind_of(trainer.model), trainer.step, trainer.state_dict()
        )
        save_network(stem.with_name(stem.name + ".pt"), trainer.model, trainer.step)


def save_model(model: nn.Module, folder: str | Path, name: str) -> Path:
    """Write a network's weights as `folder/name`."""
    path = Path(folder) / name
    save_network(path, model)
    return path


def load_model(model: nn.Module, path: str | Path) -> nn.Module:
    """Load weights into a network of the same options; returns it in evaluation mode."""
    stored = load_network(Path(path), kind_of(model))
    if getattr(stored, "options", None) != getattr(model, "options", None) or type(stored) is not type(model):
        raise UserError(
            f"{path} holds a {type(stored).__name__} with {getattr(stored, 'options', {})}; this one differs."
        )
    model.load_state_dict(stored.state_dict())
    model.data = getattr(stored, "data", {})  # type: ignore[assignment]
    return model.eval()


def _days(macro: Sequence[Any]) -> Samples:
    days = cast("SampleList[Any]", MacroSamples.of(macro))
    if days.samples is not None:
        return days.samples
    c = days.columns
    rows = len(days)
    table = {
        "x_static": c["state_static"], "x_temporal": c["state_temporal"], "x_role": c["x_roles"], "label": c["goals"],
        "extra": np.zeros((rows, 0), np.float32),
    }  # fmt: skip
    sizes = Sizes(c["state_temporal"].shape[1] - 1, c["state_static"].shape[1], c["state_temporal"].shape[2])
    return _with(empty(sizes), macro=table)


def _decisions(micro: Sequence[Any]) -> Samples:
    decisions = cast("SampleList[Any]", MicroSamples.of(micro))
    if decisions.samples is not None:
        return decisions.samples
    c, rows = decisions.columns, len(decisions)
    length = np.diff(c["offsets"])
    table = {
        "macro": np.arange(rows), "history": c["offsets"][:-1], "history_length": length, "role": c["roles"],
        "op": c["ops"], "baseline": c["baselines"], "residual": c["residuals"], "time_label": c["time_labels"],
        "time_valid": c["time_valid"], "time_open": c["time_masks"] == 0, "aux": c["aux"],
        "acceptable": c["aux"][:, 5] > 0, "partner": np.zeros((rows, 0), np.float32),
    }  # fmt: skip
    macro = {
        "goal": c["goals"], "reward": c["rewards"], "log": c["file_index"], "x_role": c["x_roles"],
        "x_static": np.zeros((rows, 12), np.float32), "x_temporal": np.zeros((rows, 11, 10), np.float32),
    }  # fmt: skip
    return _with(empty(Sizes(c["time_masks"].shape[1] - 1)), micro=table, macro=macro, offers={"row": c["histories"]})


def _rounds(samples: Sequence[Any]) -> Samples:
    rounds = cast("SampleList[Any]", L4Samples.of(samples))
    if rounds.samples is not None:
        return rounds.samples
    c = rounds.columns
    threads = np.diff(c["offsets"])
    context = c["global_feats"]
    buying = np.rint(context[:, 28] * 10).astype(np.int64)
    calls = {"macro": np.arange(len(rounds)), "first": c["offsets"][:-1], "threads": threads, "buying": buying}
    micro = {
        "thread": c["thread_feats"], "thread_day": c["thread_times"], "role": c["thread_roles"],
        "alpha": c["teacher_weights"],
    }  # fmt: skip
    return _with(
        empty(Sizes()), calls=calls, micro=micro, macro={"goal": context[:, :16], "x_static": context[:, 16:28]}
    )


def _with(samples: Samples, **tables: Columns) -> Samples:
    """Tables with only the columns that are known."""
    return Samples(samples.sizes, samples.logs, {**samples.tables, **tables})
