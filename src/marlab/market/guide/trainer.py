"""Offline learning under the names of the training guide.

    trainer = HRLXFTrainer(l2, l3, None, TrainConfig(l2_epochs=10, l3_epochs=10, output_dir="out"))
    trainer.train_phase0_bc(macro, micro)
    save_model(l2, "out", "l2_bc.pt")

The lists come from `load_tournament_data`, or are lists of its records. `marlab market train` does the same on a
dataset, with splits, evaluation and resumption of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from torch import nn

from marlab.lab.config import to_dict
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from marlab.lab.runs.trainer import loop
from marlab.market.learn.advantage import Expectation
from marlab.market.learn.settings import NAMES, Phase, TrainConfig
from marlab.market.learn.trainers import TRAINERS, PhaseTrainer
from marlab.market.networks.around import save as save_around
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import TemporalDecisionTransformer
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import LAYERS, check_options, kind_of, learnt_with, load_network, save_network
from marlab.market.online.settings import OnlineConfig
from marlab.market.samples.dataset import Columns, Samples, empty
from marlab.market.samples.goals import refuse_zero_goals
from marlab.market.samples.options import SampleOptions, Sizes
from marlab.market.samples.origin import differ, guessed_days
from marlab.market.samples.records import L4Samples, MacroSamples, MicroSamples, SampleList

History = list[dict[str, float]]


class HRLXFTrainer:
    """Trains the layers it is given; the others may be None."""

    def __init__(
        self,
        l2: HorizonManagerPPO | None,
        l3: TemporalDecisionTransformer | None,
        l4: GlobalCoordinator | None,
        config: TrainConfig,
    ) -> None:
        for name, model in (("L2", l2), ("L3", l3), ("L4", l4)):
            if model is not None and model.options["horizon"] != config.horizon:
                looks = model.options["horizon"]
                raise UserError(f"{name} looks {looks} days ahead, the config {config.horizon}; make them equal.")
        self.l2, self.l3, self.l4, self.config = l2, l3, l4, config
        self.device = choose_device(config.device)
        self.folder = Path(config.output_dir)

    def train_phase0_bc(
        self, macro: Sequence[Any], micro: Sequence[Any], val_macro: Sequence[Any] = (), val_micro: Sequence[Any] = ()
    ) -> dict[str, History]:
        """Behaviour cloning: of L2 if there are days, of L3 if there are decisions.

        What is wrong with either is found before anything is trained. With days or decisions to judge by, the network
        ends with its best epoch.
        """
        work: list[_Phase] = []
        if len(macro):
            work.append(self._phase("l2", self.l2, _days(macro), self.config.l2_resume_path, _days(val_macro)))
        if len(micro):
            decisions = _decisions(micro)
            if not self.config.allow_zero_goal:
                refuse_zero_goals(decisions.samples, "load them with goal_backfill l2 or v2, or set allow_zero_goal")
            judged = _decisions(val_micro)
            work.append(self._phase("l3", self.l3, decisions, self.config.l3_bc_resume_path, judged))
        return {phase.name: self._learn(phase) for phase in work}

    def train_phase1_awr(self, micro: Sequence[Any], val_micro: Sequence[Any] = ()) -> dict[str, History]:
        """L3 again, decisions of days that went well weighing more; those whose return is not known are left out."""
        decisions, judged = _decisions(micro), _decisions(val_micro)
        days, rows = _returns_of(micro)
        usual = Expectation(days, self.config.gamma, self.config.seed)
        phase = self._phase("awr", self.l3, decisions, self.config.l3_awr_resume_path, judged)
        phase = phase._replace(advantage=usual.advantages(days)[rows])
        if len(val_micro):
            days, rows = _returns_of(val_micro)
            phase = phase._replace(val_advantage=usual.advantages(days)[rows])
        return {"awr": self._learn(phase)}

    def train_l4_distill(self, samples: Sequence[Any], val: Sequence[Any] = ()) -> dict[str, History]:
        """L4 learns the teacher's weights."""
        phase = self._phase("l4", self.l4, _rounds(samples), self.config.l4_resume_path, _rounds(val))
        return {"l4": self._learn(phase)}

    def train_phase2_ppo(self, online: OnlineConfig | None = None) -> dict[str, History]:
        """Learning by trial in the vector market: what `marlab market online` does, in the folder of this trainer.

        It starts from rule W, not from the networks of the other phases, which earn less than the rule. The network
        is written to `around.npz`: `LitaAgentHRL(mode="learned", weights=...)` plays it.
        """
        from marlab.market.online.trainer import OnlineTrainer

        trainer = OnlineTrainer(online or OnlineConfig(seed=self.config.seed), self.device)
        history: History = []
        loop(trainer, log=lambda values: history.append(dict(values)))
        self.folder.mkdir(parents=True, exist_ok=True)
        save_around(self.folder / "around.npz", trainer.best_net().plain())
        return {"ppo": history}

    def save_all(self, suffix: str) -> list[Path]:
        """Write l2_<suffix>.pt, l3_<suffix>.pt and l4_<suffix>.pt of the layers there are."""
        made = []
        for name, model in (("l2", self.l2), ("l3", self.l3), ("l4", self.l4)):
            if model is not None:
                made.append(save_model(model, self.folder, f"{name}_{suffix}.pt"))
        return made

    def _phase(
        self, name: Phase, model: nn.Module | None, given: _Given, resume: str | Path | None, judged: _Given
    ) -> _Phase:
        """What one phase needs, checked."""
        if model is None:
            raise UserError(f"The trainer was made without the network that {NAMES[name]} trains.")
        options = given.options or self.config.sample_options
        if options is None:
            raise UserError(
                f"The samples of {NAMES[name]} do not say with which L1 rules and features they were made, and play "
                "needs the same: give TrainConfig(sample_options=SampleOptions(...))."
            )
        for other in (self.config.sample_options, judged.options):
            if other is not None:
                differ(options, other, f"The samples of {NAMES[name]} were not made as is said")
        told = to_dict(options)
        learnt: Any = getattr(model, "data", {})
        if learnt:
            check_options("given to the trainer", model, told)
        model.data = {**learnt, **told}  # type: ignore[assignment]
        learnt_with("given to the trainer", model)  # refuses a network that its features do not fit
        checkpoint = None if resume is None else load_checkpoint(Path(resume), kind_of(model), self.device)
        val = judged.samples if judged.rows else None
        return _Phase(name, model, given.samples, None if checkpoint is None else checkpoint.state, val)

    def _learn(self, phase: _Phase) -> History:
        kind = TRAINERS[phase.name]
        table = kind.table(phase.samples, self.device, phase.advantage)
        judged = None
        if phase.val is not None:
            judged = kind.table(phase.val, self.device, phase.val_advantage)
        trainer = kind(phase.model, table, judged, self.config, self.device)
        if phase.resume is not None:
            trainer.load_state_dict(phase.resume)
        history: History = []
        best = self.folder / f"{NAMES[phase.name]}_best.pt"
        loop(
            trainer,
            log=lambda values: history.append(dict(values)),
            save=lambda _: self._save(trainer),
            save_every=self.config.save_every,
        )
        if trainer.best is not None and best.exists():
            phase.model.load_state_dict(load_network(best, kind_of(phase.model), self.device).state_dict())
        save_network(self.folder / f"{NAMES[phase.name]}.pt", phase.model, trainer.step)
        phase.model.eval()
        return history

    def _save(self, trainer: PhaseTrainer) -> None:
        stem = self.folder / f"{NAMES[trainer.phase]}_epoch{trainer.step}"
        save_checkpoint(
            stem.with_name(stem.name + ".ckpt.pt"), kind_of(trainer.model), trainer.step, trainer.state_dict()
        )
        save_network(stem.with_name(stem.name + ".pt"), trainer.model, trainer.step)
        if trainer.improved:
            save_network(self.folder / f"{NAMES[trainer.phase]}_best.pt", trainer.model, trainer.step)


def train_l2_bc(
    model: HorizonManagerPPO, samples: Sequence[Any], config: TrainConfig, val: Sequence[Any] = ()
) -> History:
    """L2 alone: what `HRLXFTrainer.train_phase0_bc` does with days."""
    return HRLXFTrainer(model, None, None, config).train_phase0_bc(samples, [], val_macro=val)["l2"]


def train_l3_bc(
    model: TemporalDecisionTransformer, samples: Sequence[Any], config: TrainConfig, val: Sequence[Any] = ()
) -> History:
    """L3 alone: what `HRLXFTrainer.train_phase0_bc` does with decisions."""
    return HRLXFTrainer(None, model, None, config).train_phase0_bc([], samples, val_micro=val)["l3"]


def train_l3_awr(
    model: TemporalDecisionTransformer, samples: Sequence[Any], config: TrainConfig, val: Sequence[Any] = ()
) -> History:
    """What `HRLXFTrainer.train_phase1_awr` does."""
    return HRLXFTrainer(None, model, None, config).train_phase1_awr(samples, val)["awr"]


def train_l4_distill(
    model: GlobalCoordinator, samples: Sequence[Any], config: TrainConfig, val: Sequence[Any] = ()
) -> History:
    """What `HRLXFTrainer.train_l4_distill` does."""
    return HRLXFTrainer(None, None, model, config).train_l4_distill(samples, val)["l4"]


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


def add_options(path: str | Path, options: SampleOptions) -> None:
    """Write into weights that do not say it how the samples that they learnt from were made."""
    file = Path(path)
    stored = load_checkpoint(file)
    if stored.kind not in LAYERS:
        raise UserError(f"{file} holds no weights of L2, L3 or L4.")
    network = load_network(file, stored.kind)
    told: Any = getattr(network, "data", {})
    if told.get("l1") or told.get("features"):
        raise UserError(f"{file} says already how its samples were made.")
    network.data = to_dict(options)  # type: ignore[assignment]
    learnt_with(file, network)
    save_checkpoint(file, stored.kind, stored.step, {**stored.state, "data": to_dict(options)})


class _Given(NamedTuple):
    """Samples as tables, and how they were made."""

    samples: Samples
    options: SampleOptions | None
    rows: int


class _Phase(NamedTuple):
    """One phase, ready to be trained."""

    name: Phase
    model: nn.Module
    samples: Samples
    resume: Mapping[str, Any] | None
    val: Samples | None
    advantage: NDArray[np.float32] | None = None
    val_advantage: NDArray[np.float32] | None = None


_NOTHING = _Given(empty(Sizes()), None, 0)


def _days(macro: Sequence[Any]) -> _Given:
    if not len(macro):
        return _NOTHING
    days = cast("SampleList[Any]", MacroSamples.of(macro))
    if days.samples is not None:
        return _Given(days.samples, days.origin.options, len(days))
    c = days.columns
    table = {
        "x_static": c["state_static"],
        "x_temporal": c["state_temporal"],
        "x_role": c["x_roles"],
        "label": c["goals"],
        "extra": c["extras"],
    }
    sizes = Sizes(c["state_temporal"].shape[1] - 1, c["state_static"].shape[1], c["state_temporal"].shape[2])
    return _Given(_with(empty(sizes), macro=table), days.origin.options, len(days))


def _decisions(micro: Sequence[Any]) -> _Given:
    if not len(micro):
        return _NOTHING
    decisions = cast("SampleList[Any]", MicroSamples.of(micro))
    if decisions.samples is not None:
        return _Given(decisions.samples, decisions.origin.options, len(decisions))
    c, rows = decisions.columns, len(decisions)
    length = np.diff(c["offsets"])
    table = {
        "macro": np.arange(rows), "history": c["offsets"][:-1], "history_length": length, "role": c["roles"],
        "op": c["ops"], "baseline": c["baselines"], "residual": c["residuals"], "time_label": c["time_labels"],
        "time_valid": c["time_valid"], "time_open": c["time_masks"] == 0, "aux": c["aux"],
        "acceptable": c["acceptable"], "partner": c["partners"],
    }  # fmt: skip
    sizes = Sizes(c["time_masks"].shape[1] - 1)
    tables = {"micro": table, "macro": {"goal": c["goals"]}, "offers": {"row": c["histories"]}}
    return _Given(_with(empty(sizes), **tables), decisions.origin.options, rows)


def _returns_of(micro: Sequence[Any]) -> tuple[Columns, NDArray[np.integer]]:
    """The days of the logs that decisions come from, and the row of each decision's day: the same for the loader's
    lists, for records and for files."""
    decisions = cast("SampleList[Any]", MicroSamples.of(micro))
    c, days = decisions.columns, decisions.origin.days
    if days is not None and (c["day_rows"] >= 0).all():
        return days, c["day_rows"]
    return guessed_days(c["file_index"], c["days"], c["rewards"])


def _rounds(samples: Sequence[Any]) -> _Given:
    if not len(samples):
        return _NOTHING
    rounds = cast("SampleList[Any]", L4Samples.of(samples))
    if rounds.samples is not None:
        return _Given(rounds.samples, rounds.origin.options, len(rounds))
    c = rounds.columns
    threads = np.diff(c["offsets"])
    context = c["global_feats"]
    buying = np.rint(context[:, 28] * 10).astype(np.int64)
    calls = {"macro": np.arange(len(rounds)), "first": c["offsets"][:-1], "threads": threads, "buying": buying}
    micro = {
        "thread": c["thread_feats"],
        "thread_day": c["thread_times"],
        "role": c["thread_roles"],
        "alpha": c["teacher_weights"],
    }
    macro = {"goal": context[:, :16], "x_static": context[:, 16:28]}
    return _Given(_with(empty(Sizes()), calls=calls, micro=micro, macro=macro), rounds.origin.options, len(rounds))


def _with(samples: Samples, **tables: Columns) -> Samples:
    """Tables with only the columns that are known."""
    return Samples(samples.sizes, samples.logs, {**samples.tables, **tables})
