"""Offline learning, one phase at a time: L2 and L3 by behaviour cloning, L3 by advantages, L4 by distillation.

A phase trainer learns in epochs and can be saved between any two of them (`lab.runs.trainer.Trainer`); stopped and
resumed it gives the weights of a training that never stopped. What happens around a phase (files, evaluation, the next
phase's goals) is in `phases`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from marlab.lab.config import diff
from marlab.lab.errors import UserError
from marlab.lab.runs.rng import Rngs
from marlab.market.learn.settings import NAMES, Phase, TrainSettings
from marlab.market.learn.tables import DayTable, DecisionTable, RoundTable
from marlab.market.networks import losses as loss_of
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3Output, L3PolicyModel, TemporalDecisionTransformer
from marlab.market.networks.losses import ActionLabels
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.samples.dataset import Samples
from marlab.market.samples.options import Sizes

Table = DayTable | DecisionTable | RoundTable


class PhaseTrainer(ABC):
    """Epochs of AdamW over a table of samples, with the validation loss after each."""

    phase: Phase

    def __init__(
        self, model: nn.Module, train: Table, val: Table | None, settings: TrainSettings, device: torch.device
    ) -> None:
        """Nothing of `settings` that changes between two calls of a resumed training is kept in the state."""
        self.model, self.train, self.val = model.to(device), train, val
        self.settings, self.device = settings, device
        self.step, self.total = 0, settings.epochs(self.phase)
        self.best: tuple[int, float] | None = None  # epoch, validation loss
        self.rngs = Rngs(settings.seed, "cpu")
        self.optimiser = torch.optim.AdamW(
            model.parameters(),
            lr=settings.lr_at(self.phase, 0),
            weight_decay=settings.weight_decay,
            fused=device.type == "cuda",
        )
        self.parameters = [p for group in self.optimiser.param_groups for p in group["params"]]
        if train.rows == 0:
            raise UserError(f"There are no samples for {NAMES[self.phase]}; collect more worlds or check the expert.")

    @staticmethod
    @abstractmethod
    def table(samples: Samples, device: torch.device, advantage: NDArray[np.float32] | None = None) -> Table:
        """Samples as the phase learns from them; only L3 has advantages."""

    @property
    def batch_size(self) -> int:
        """Rows of a batch."""
        layer = "l3" if self.phase == "awr" else self.phase
        return int(getattr(self.settings, f"{layer}_batch_size"))

    @abstractmethod
    def losses(self, table: Table, index: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of some rows, and what else to report as means over rows."""

    @property
    def stopped(self) -> bool:
        """Whether the validation loss has not improved for `patience` epochs."""
        return bool(self.settings.patience and self.best and self.step - self.best[0] >= self.settings.patience)

    @property
    def improved(self) -> bool:
        """Whether the last epoch has the best validation loss so far."""
        return self.best is not None and self.best[0] == self.step

    def iterate(self) -> dict[str, Any]:
        """One epoch: shuffled batches, then the validation rows."""
        lr = self.settings.lr_at(self.phase, self.step)
        for group in self.optimiser.param_groups:
            group["lr"] = lr  # also after a resume: the settings decide, not the checkpoint
        self.model.train()
        torch.manual_seed(self.rngs.draw_seed(f"{self.phase}/dropout/{self.step}"))
        order = torch.randperm(self.train.rows, generator=self.rngs.torch("shuffle")).to(self.device)
        means = _Means()
        for index in order.split(self.batch_size):
            loss, more = self.losses(self.train, index)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.parameters, self.settings.max_grad_norm)
            self.optimiser.step()
            means.add(len(index), {"loss": loss.detach(), **more})
        self.step += 1
        name = NAMES[self.phase]
        values = {f"{name}/train/{key}": value for key, value in means.values().items()}
        values |= {f"{name}/epoch": float(self.step), f"{name}/learning_rate": lr}
        if self.val is not None and self.val.rows:
            measured = self.measure(self.val)
            values |= {f"{name}/val/{key}": value for key, value in measured.items()}
            if self.best is None or measured["loss"] < self.best[1]:
                self.best = self.step, measured["loss"]
        if not np.isfinite(values[f"{name}/train/loss"]):
            raise RuntimeError(f"{name}: the loss of epoch {self.step} is not a number")
        return values

    @torch.no_grad()
    def measure(self, table: Table) -> dict[str, float]:
        """Means over all rows of a table, without dropout."""
        self.model.eval()
        means = _Means()
        for index in torch.arange(table.rows, device=self.device).split(max(self.batch_size, 1024)):
            loss, more = self.losses(table, index)
            means.add(len(index), {"loss": loss, **more})
        return means.values()

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next epoch depends on."""
        return {
            "options": getattr(self.model, "options", {}),
            "data": getattr(self.model, "data", {}),
            "plan": getattr(self.model, "plan", ""),
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "epoch": self.step,
            "best": self.best,
            "rngs": self.rngs.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        mine = getattr(self.model, "options", {})
        if state["options"] != mine:
            raise UserError(f"The checkpoint holds a network with {state['options']}, this training builds {mine}.")
        told = state.get("data") or {}
        if told.get("l1") and told.get("features"):  # samples made anew in another way do not go on with old weights
            data: Any = getattr(self.model, "data", {})
            for part in ("l1", "features"):
                changed = diff(told[part], data.get(part, {}))
                if changed:
                    key, theirs, ours = changed[0]
                    raise UserError(f"The checkpoint learnt with {part}.{key} = {theirs!r}, the samples have {ours!r}.")
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step = int(state["epoch"])
        best = state["best"]
        self.best = None if best is None else (int(best[0]), float(best[1]))
        self.rngs.load_state_dict(state["rngs"])


class _Means:
    """Weighted means of tensors, read back once at the end."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._rows = 0

    def add(self, rows: int, values: Mapping[str, Tensor]) -> None:
        self._rows += rows
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, torch.zeros((), device=value.device)) + value.detach() * rows

    def values(self) -> dict[str, float]:
        return {name: float(total) / max(1, self._rows) for name, total in self._sums.items()}


class DayGoalTrainer(PhaseTrainer):
    """L2 learns the day's goal."""

    phase: Phase = "l2"

    @staticmethod
    def table(samples: Samples, device: torch.device, advantage: Any = None) -> DayTable:
        return DayTable(samples, device)

    def losses(self, table: Table, index: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(table, DayTable)
        days = table.batch(index)
        mean = self.model(days.x_static, days.x_temporal, days.x_role)[0]
        losses = loss_of.goal_loss(
            mean, days.label, days.x_role, self.settings.l2_q_transform, self.settings.l2_q_weight
        )
        return losses.loss, {"mse": losses.square / losses.weight.clamp_min(1)}


class ActionTrainer(PhaseTrainer):
    """L3 learns what the expert did in each negotiation."""

    phase: Phase = "l3"

    def __init__(
        self, model: nn.Module, train: Table, val: Table | None, settings: TrainSettings, device: torch.device
    ) -> None:
        super().__init__(model, train, val, settings, device)
        self._run = torch.compile(model, dynamic=False) if settings.compile else model

    @staticmethod
    def table(samples: Samples, device: torch.device, advantage: Any = None) -> DecisionTable:
        return DecisionTable(samples, device, advantage=advantage)

    def losses(self, table: Table, index: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(table, DecisionTable)
        output, labels, advantage = self._decide(table, index)
        weight = self.weights(table, advantage)
        losses = loss_of.action_loss(output, labels, weight, self.settings.l3_residual_loss)
        hits = (output.op_logits.argmax(1) == labels.op).float().mean()
        more = {
            "loss_op": losses.op,
            "loss_q": losses.quantity,
            "loss_p": losses.price,
            "loss_t": losses.day,
            "op_acc": hits,
        }
        if weight is not None and not self.model.training:
            more["loss_plain"] = loss_of.action_loss(output, labels, None, self.settings.l3_residual_loss).total
        return losses.total, more

    def _decide(self, table: DecisionTable, index: Tensor) -> tuple[L3Output, ActionLabels, Tensor]:
        """Outputs for some decisions, perhaps in another order, with their labels and advantages.

        Most negotiations are short and padding is computed like offers, so a CPU takes short and long ones apart.
        """
        if self.device.type != "cpu":
            decisions = table.batch(index)
            full = len(index) == self.batch_size  # a compiled network is for full batches; the last one runs as it is
            with self._precision():
                return (self._run if full else self.model)(decisions.inputs), decisions.labels, decisions.advantage
        parts = [table.batch(rows, slots) for slots, rows in table.by_length(index)]
        outputs = [self._run(part.inputs) for part in parts]
        joined = L3Output(*(torch.cat(values) for values in zip(*outputs)))
        labels = ActionLabels(*(torch.cat(values) for values in zip(*(part.labels for part in parts))))
        return joined, labels, torch.cat([part.advantage for part in parts])

    def weights(self, table: DecisionTable, advantage: Tensor) -> Tensor | None:
        """Weights of the decisions of a batch; None where all count the same."""
        return None

    def _precision(self) -> AbstractContextManager[Any]:
        if self.device.type == "cuda" and self.settings.mixed_precision:
            return torch.autocast("cuda", torch.bfloat16)
        return nullcontext()


class AdvantageTrainer(ActionTrainer):
    """L3 learns more from decisions on days that went better than expected, and is judged by the same measure: by
    plain cloning loss, the epoch that changed least would always be the best one."""

    phase: Phase = "awr"

    def weights(self, table: DecisionTable, advantage: Tensor) -> Tensor | None:
        """Mean 1 over a batch in training, over the whole table where it is judged."""
        beta, largest = self.settings.awr_beta, self.settings.awr_clip
        if self.model.training:
            return loss_of.advantage_weights(loss_of.standardise(advantage), beta, largest)[0]
        whole = torch.from_numpy(table.advantage).to(advantage)
        spread = whole.std(correction=0).clamp_min(1e-6)
        mean = loss_of.advantage_weights((whole - whole.mean()) / spread, beta, largest)[1].mean()
        return loss_of.advantage_weights((advantage - whole.mean()) / spread, beta, largest)[1] / mean


class WeightTrainer(PhaseTrainer):
    """L4 learns the teacher's weights of a round's threads."""

    phase: Phase = "l4"

    @staticmethod
    def table(samples: Samples, device: torch.device, advantage: Any = None) -> RoundTable:
        return RoundTable(samples, device)

    def losses(self, table: Table, index: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(table, RoundTable) and isinstance(self.model, GlobalCoordinator)
        rounds = table.batch(index)
        scores, _ = self.model.scores(rounds.threads, rounds.days, rounds.roles, rounds.context, rounds.mask)
        losses = loss_of.weight_loss(scores, rounds.teacher, rounds.mask)
        return losses.loss, {"kl": losses.kl, "agree": losses.agree}


TRAINERS: dict[Phase, type[PhaseTrainer]] = {
    kind.phase: kind for kind in (DayGoalTrainer, ActionTrainer, AdvantageTrainer, WeightTrainer)
}


def seeded(settings: TrainSettings, phase: Phase) -> None:
    """Make the initial weights of a phase a function of the seed alone."""
    torch.manual_seed(Rngs(settings.seed).draw_seed(f"{phase}/weights"))


def new_manager(settings: TrainSettings, sizes: Sizes) -> HorizonManagerPPO:
    seeded(settings, "l2")
    return HorizonManagerPPO(
        sizes.horizon,
        d_static=sizes.static + sizes.extra,
        d_temporal=sizes.temporal,
        positive_q=settings.l2_positive,
        gap_quantities=sizes.extra > 0,
    )


def new_executor(settings: TrainSettings, horizon: int, d_partner: int = 0) -> TemporalDecisionTransformer:
    seeded(settings, "l3")
    plan = L3PolicyModel if settings.l3_plan == "F" else TemporalDecisionTransformer
    return plan(
        horizon, d_model=settings.l3_width, n_layers=settings.l3_layers, dropout=settings.dropout, d_partner=d_partner
    )


def new_coordinator(settings: TrainSettings, horizon: int) -> GlobalCoordinator:
    seeded(settings, "l4")
    return GlobalCoordinator(horizon=horizon)
