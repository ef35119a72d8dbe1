"""Training of the models of others: one epoch at a time, resumable to the bit.

Stages: "labels" trains the action predictor with known goals (or none); "vae" the autoencoder with its objective;
"history" the encoder of what happened so far, while the autoencoder is frozen and shows where players were heading;
"prototypes" the action predictor alone, given the prototype of what the player turned out to be up to, as beliefs and
planners will ask it, or given the code of that moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from marlab.hunt.game.rows import Symmetries, row_layout
from marlab.hunt.game.symmetry import symmetries
from marlab.hunt.others.history import Sequences
from marlab.hunt.others.moa import MoaLoss, action_loss, averaged_copy
from marlab.hunt.others.models import GoalModels, ModelSpec
from marlab.hunt.others.vae import Code, active_units, kl_factor, recon_error
from marlab.hunt.players.rollout import NONE
from marlab.hunt.pretraining.answers import (
    Prediction,
    Stage,
    codebook_of,
    predict,
    read_codes,
    read_histories,
    soft_labels,
    vae_scores,
)
from marlab.hunt.pretraining.data import (
    GoalBatch,
    GoalData,
    Turn,
    batch_of,
    row_batches,
    sequence_batches,
)
from marlab.hunt.pretraining.floor import ExactPredictions
from marlab.hunt.pretraining.metrics import ActionScores, score_actions, write_evaluation
from marlab.lab.device import choose_device
from marlab.lab.ppo.timing import Stopwatch
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.trainer import Halfway

if TYPE_CHECKING:
    from marlab.hunt.others.config import Balance, PretrainGoalsConfig

CURVE_POINTS = 32
"""Points of the loss curves that an epoch records."""
USUAL_CELLS = 16
"""The grid whose reconstruction weighs as much as the prediction of actions."""
HEADING_WEIGHT = 0.01
"""Of foretelling the autoencoder's code of the situation that a player was heading for: it buys nothing any more, but
the shipped codes were learnt so."""
MAX_GRAD_NORM = 10.0
WEIGHT_DECAY = 1e-4
"""L2 penalty of the action predictor's weights."""
LOOK_AHEAD, LOOK_BACK = 0.2, 0.4
"""Shares of the rows that explain later actions, and that are explained by the code at the end."""


class Losses(NamedTuple):
    """One training step: what is minimised, and what the published curves show."""

    total: Tensor
    policy: Tensor  # cross-entropy given the goal, nats
    free: Tensor  # cross-entropy without a goal
    recon: Tensor
    kl: Tensor  # nats, batch mean of the sum over dimensions
    entropy: Tensor  # nats, of the predictions
    active_units: Tensor
    grad_norm: Tensor


class Splits(NamedTuple):
    """What a training sees: the rows it learns from, and the rows it is judged by, with the exact truth about them."""

    train: GoalData
    shown: GoalData  # part of the training rows
    shown_truth: ExactPredictions
    validation: GoalData
    validation_truth: ExactPredictions


@dataclass
class Epoch:
    """How far the training of an epoch is."""

    order: Tensor  # of all rows or sequences
    sums: Tensor  # [Losses] over the batches so far
    done: int = 0  # batches
    curve: list[Tensor] = field(default_factory=list)  # losses at some of them
    steps: list[int] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    goal: Tensor | None = None  # [R, 2] goals of the rows, or [R, D] their prototypes, where the models had a say
    code: Tensor | None = None  # [R, 2, D] the codes of that moment, beside prototypes


class OthersTrainer:
    """`marlab.lab.runs.trainer.Trainer`: a unit is an epoch; it can be saved after any of its batches."""

    def __init__(
        self,
        config: PretrainGoalsConfig,
        spec: ModelSpec,
        splits: Splits,
        folder: Path | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """folder: where the evaluation files of every epoch go; say: called with a line about every epoch."""
        self.config, self.spec, self.data = config, spec, splits
        self.folder, self.say = folder, say
        self.step, self.total = 0, config.epochs
        self.updates, self.stage_updates = 0, 0
        self.epoch: Epoch | None = None  # that is under way
        self.should_stop: Callable[[], bool] = lambda: False
        self.device = choose_device(config.device)
        self.rngs = Rngs(config.seed, self.device)
        self.models = GoalModels(spec, self.rngs.torch("init", "cpu")).to(self.device)
        self.target = averaged_copy(self.models)
        moa = list(self.models.moa.parameters())
        parts = (self.models.vae, self.models.history, self.models.decoder)
        codes = [p for net in parts if net is not None for p in net.parameters()]
        groups = [{"params": moa, "weight_decay": WEIGHT_DECAY}, {"params": codes, "weight_decay": 0.0}]
        self.optimiser = torch.optim.Adam([g for g in groups if g["params"]], config.learning_rate, fused=True)
        self.watch = Stopwatch(self.device)
        columns = Symmetries(row_layout(spec.game, spec.paths), self.device).rows
        self._turns = [Turn(*pair) for pair in zip(symmetries(spec.game.height, spec.game.width), columns)]

    # --- the trainer's contract -----------------------------------------------------------------------------------

    @property
    def stage(self) -> Stage:
        """What the next epoch trains."""
        source = self.spec.goal_source
        if source == "history":
            before, history, _ = self.config.stages
            if self.step < before:
                return "vae"
            return "history" if self.step < before + history else "prototypes"
        return "vae" if source == "state" else "labels"

    @property
    def final_stage(self) -> Stage:
        """What the last epoch trains: the stage whose models count."""
        if self.spec.goal_source == "history":
            return "prototypes" if self.config.stages[2] else "history"
        return "vae" if self.spec.goal_source == "state" else "labels"

    def iterate(self) -> Mapping[str, Any]:
        stage = self.stage
        if stage == "history" and self.step == self.config.stages[0] and self.epoch is None:
            self._begin_history()
        with self.watch("train"):
            values = self._train_epoch(stage)
        with self.watch("evaluate"):
            values |= self._evaluate_epoch(stage)
        seconds = self.watch.pop()
        values |= {f"time/{name}": value for name, value in seconds.items()}
        values["time/rows_per_s"] = self.data.train.rows / seconds["train"]
        values["stage"] = stage
        self.step += 1
        return values

    def state_dict(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "updates": self.updates,
            "stage_updates": self.stage_updates,
            "spec": self.spec.to_dict(),
            "models": self.models.state_dict(),
            "target": self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "rngs": self.rngs.state_dict(),
            "epoch": None if self.epoch is None else vars(self.epoch),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step, self.updates, self.stage_updates = state["step"], state["updates"], state["stage_updates"]
        self.models.load_state_dict(state["models"])
        self.target.load_state_dict(state["target"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.rngs.load_state_dict(state["rngs"])
        self.epoch = None
        if state["epoch"] is not None:
            self.epoch = Epoch(**state["epoch"])
            self.epoch.order = self.epoch.order.cpu()

    def _begin_history(self) -> None:
        """The history encoder starts with the predictor's eyes, which know by now what lies in which direction."""
        assert self.models.history is not None
        self.stage_updates = 0
        learnt = self.models.moa.sight.state_dict()
        for models in (self.models, self.averaged):
            assert models.history is not None
            models.history.sight.load_state_dict(learnt)

    # --- training ---------------------------------------------------------------------------------------------------

    def _train_epoch(self, stage: Stage) -> dict[str, Any]:
        self.models.train()
        if self.epoch is None:
            count = self.data.train.sequences if stage == "history" else self.data.train.rows
            order = torch.randperm(count, generator=self.rngs.torch("shuffle", "cpu"))
            self.epoch = Epoch(order, torch.zeros(len(Losses._fields), device=self.device))
            if self.spec.goal_source == "outcome":
                self.epoch.goal = self._goals_by_outcome()
            if stage == "prototypes":
                self.epoch.goal, self.epoch.code = self._prototypes()
        epoch = self.epoch
        every = max(1, self.data.train.rows // self.config.batch_size // CURVE_POINTS)
        for batch in islice(self._batches(stage, epoch.order), epoch.done, None):
            factor = {"history": HEADING_WEIGHT, "vae": self._kl_factor()}.get(stage, 0.0)
            values = torch.stack([x.detach() for x in self.train_step(stage, batch)])
            epoch.sums, epoch.done = epoch.sums + values, epoch.done + 1
            if epoch.done % every == 1 or every == 1:
                epoch.curve.append(values)
                epoch.steps.append(self.updates)
                epoch.factors.append(factor)
            if self.should_stop():
                raise Halfway
        self.epoch = None
        means = dict(zip(Losses._fields, (epoch.sums / epoch.done).tolist()))
        lines = torch.stack(epoch.curve).T.tolist()
        record: dict[str, Any] = {f"loss/{name}": means[name] for name in ("policy", "free", "recon", "kl", "total")}
        record |= {name: means[name] for name in ("entropy", "active_units", "grad_norm")}
        record |= {"kl_factor": epoch.factors[-1], "updates": self.updates}
        record["curve"] = {"step": epoch.steps, "kl_factor": epoch.factors, **dict(zip(Losses._fields, lines))}
        return record

    def _goals_by_outcome(self) -> Tensor:
        """[R, 2] goals of the training rows: who caught nothing is left out at first, then judged by what it did."""
        data = self.data.train
        if not self.updates:
            return data.goal * (data.outcome != NONE).unsqueeze(1)
        labels = soft_labels(self.averaged, data)
        self.models.train()
        return labels

    def _prototypes(self) -> tuple[Tensor, Tensor]:
        """[R, D] for every training row the prototype of its player's code in the end, and [R, 2, D] its codes."""
        assert self.models.history is not None and self.averaged.history is not None
        self.models.history.load_state_dict(self.averaged.history.state_dict())  # it does not change from here on
        data = self.data.train
        code = read_codes(self.averaged, data)
        last = (data.offsets[1:] - 1).to(code.device)
        book = codebook_of(self.averaged, data, code[:, 0], self.config.seed)
        own = book.prototypes[book.nearest(code[last, 0])]
        return own.repeat_interleave(data.offsets.diff().to(code.device), 0), code

    def _batches(self, stage: Stage, order: Tensor) -> Iterator[Any]:
        batches: Any = sequence_batches if stage == "history" else row_batches
        return iter(batches(self.data.train, self.config.batch_size, order))

    def train_step(self, stage: Stage, batch: Tensor | Sequences) -> Losses:
        """One optimiser step on rows [R] or on whole sequences."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.learning_rate * self._rate_share(stage)
        turn = self._turn()
        if isinstance(batch, Sequences):
            losses = self._history_losses(batch, turn)
        else:
            losses = self._row_losses(stage, batch, turn)
        self.optimiser.zero_grad(set_to_none=True)
        losses.total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.models.parameters(), MAX_GRAD_NORM)
        self.optimiser.step()
        self.target.update_parameters(self.models)
        self.updates += 1
        self.stage_updates += 1
        return losses._replace(grad_norm=norm)

    def _turn(self) -> Turn:
        """How this step sees the grid, turned and mirrored at random: rule-based players know no compass."""
        pick = torch.randint(len(self._turns), (1,), generator=self.rngs.torch("symmetry", "cpu"))
        return self._turns[int(pick)]

    def _row_losses(self, stage: Stage, rows: Tensor, turn: Turn) -> Losses:
        batch = batch_of(self.data.train, rows, turn)
        if stage == "labels":
            goals, weight = self._label_goals(self.data.train, rows)
            moa = self._moa_loss(batch, goals, weight)
            zero = moa.total.new_zeros(())
            return Losses(moa.total, moa.given, moa.free, zero, zero, moa.entropy, zero, zero)
        if stage == "prototypes":
            return self._prototype_losses(batch, rows)
        vae, c = self.models.vae, self.config
        assert vae is not None
        planes = batch.planes
        code = vae.encode(planes)
        z = code.sample(self.rngs.torch("noise"))
        kl = code.kl_to_standard().sum(1).mean()
        total = self._kl_factor() * kl
        # What an objective leaves out is still measured, but sends no gradient.
        with torch.set_grad_enabled(c.vae_loss != "moa"):
            recon = recon_error(vae.decode(z), planes, c.recon_loss, self.spec.map_plane)
        with torch.set_grad_enabled(c.vae_loss != "recon"):
            moa = self._moa_loss(batch, z.unsqueeze(1), None)
        if c.vae_loss != "moa":
            total = total + (self._recon_weight() if c.vae_loss == "joint" else 1.0) * recon
        if c.vae_loss != "recon":
            total = total + moa.total
        return Losses(total, moa.given, moa.free, recon, kl, moa.entropy, _active(code), total.new_zeros(()))

    def _prototype_losses(self, batch: GoalBatch, rows: Tensor) -> Losses:
        assert self.epoch is not None and self.epoch.goal is not None and self.epoch.code is not None
        noise = self.rngs.torch("noise")
        now = Code(*self.epoch.code[rows].unbind(1)).sample(noise)
        coin = torch.rand(len(rows), 1, generator=noise, device=now.device) < 0.5
        goals = torch.where(coin, self.epoch.goal[rows], now).unsqueeze(1)
        moa = self._moa_loss(
            batch, goals, None, "none"
        )  # beliefs need chances as they are, not those of rare actions raised
        zero = moa.total.new_zeros(())
        return Losses(moa.total, moa.given, moa.free, zero, zero, moa.entropy, zero, zero)

    def _history_losses(self, order: Sequences, turn: Turn) -> Losses:
        m, data, noise = self.models, self.data.train, self.rngs.torch("noise")
        assert m.vae is not None and m.history is not None and m.decoder is not None
        rows = order.rows
        planes = turn.symmetry.planes(data.planes[rows])
        code, memory = read_histories(m, data, order, turn)
        with torch.no_grad():  # the autoencoder is frozen by now
            heading = m.vae.encode(turn.symmetry.planes(data.planes[data.subgoal[rows]]))
        guess = code.sample(noise)
        # Early on the true heading often stands in for the guess, so that the predictor learns what a code means.
        hinted = torch.rand(len(rows), 1, generator=noise, device=guess.device) < self._teacher_forcing_share()
        goal = torch.where(hinted, heading.sample(noise), guess)
        # The code foretells the subgoal's, as widely as it must: this way around a sure subgoal is no wall.
        kl = heading.kl_to(code).sum(1).mean()
        rebuilt = m.decoder(torch.cat([guess, memory], -1))
        recon = recon_error(rebuilt, planes, self.config.recon_loss, self.spec.map_plane)
        explained, by_end = self._choose_target_rows(rows)
        # A code at the end knows all actions and must not be made to store them: looking back moves the predictor only.
        goal = torch.where(by_end.unsqueeze(1), guess[order.last].detach(), goal)
        moa = self._moa_loss(batch_of(data, explained, turn), goal.unsqueeze(1), None)
        outcome = cross_entropy(m.history.outcome(guess.unsqueeze(0)).squeeze(0), data.outcome[rows])
        total = moa.total + self._recon_weight() * recon + HEADING_WEIGHT * kl
        total = total + self.config.outcome_weight * outcome
        return Losses(total, moa.given, moa.free, recon, kl, moa.entropy, _active(code), total.new_zeros(()))

    def _choose_target_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows [R] whose actions the goals of `rows` must explain, and where the code at the end must explain the row.

        The next action alone hardly depends on a goal, so some rows look up to `horizon` steps ahead; and what a player
        turns out to be up to must explain all that it did, because beliefs try such goals on every step.
        """
        coin, place = torch.rand(2, len(rows), generator=self.rngs.torch("noise"), device=self.device)
        ahead = rows + (place * (self.data.train.subgoal[rows] - rows + 1)).long()
        return torch.where(coin < LOOK_AHEAD, ahead, rows), coin >= 1.0 - LOOK_BACK

    def _moa_loss(
        self, batch: GoalBatch, goals: Tensor, weight: Tensor | None, balance: Balance | None = None
    ) -> MoaLoss:
        c, slots = self.config, self.spec.game.players - 1
        slot = torch.randint(slots, batch.action.shape, generator=self.rngs.torch("slots"), device=self.device)
        given, free = self.models.moa.rows(batch.seen, batch.time, goals, slot)
        return action_loss(
            given,
            free if self.spec.goal_width else None,
            batch.action,
            batch.mask,
            weight,
            balance=balance or c.class_balance,
            legacy_double_softmax=c.legacy_double_softmax,
        )

    def _label_goals(self, data: GoalData, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Goals [R, G, W] to try and how probable each is [R, G]."""
        if self.spec.goal_width == 0:
            return torch.zeros(len(rows), 1, 0, device=self.device), None
        goal = data.goal if self.epoch is None or self.epoch.goal is None else self.epoch.goal
        return torch.eye(2, device=self.device).expand(len(rows), 2, 2), goal[rows]

    def _rate_share(self, stage: Stage) -> float:
        """What of the step size is left: over the prototype stage it falls to 0 along a cosine."""
        if stage != "prototypes":
            return 1.0
        c, data = self.config, self.data.train
        batches = max(1, data.rows // c.batch_size)
        length = c.stages[2]
        done = (self.step - (c.epochs - length)) * batches + (self.epoch.done if self.epoch else 0)
        return 0.5 * (1.0 + math.cos(math.pi * done / (length * batches)))

    def _kl_factor(self) -> float:
        """Weight of the autoencoder's KL term."""
        return kl_factor(self.stage_updates, *self.config.kl_schedule)

    def _recon_weight(self) -> float:
        """Weight of the reconstruction: its error is a mean over cells, and a player fills one of however many."""
        return self.spec.game.cells / USUAL_CELLS

    def _teacher_forcing_share(self) -> float:
        """Share of rows that are told the true heading: from 1 to 0 over the first half of the history stage."""
        data = self.data.train
        each = max(1, round(self.config.batch_size * data.sequences / data.rows))
        stage_length = self.config.stages[1] * -(-data.sequences // each)
        return max(0.0, 1.0 - 2.0 * self.stage_updates / stage_length)

    # --- evaluation -------------------------------------------------------------------------------------------------

    @property
    def averaged(self) -> GoalModels:
        """The averaged models: what is evaluated, saved and used by others."""
        return cast(GoalModels, self.target.module)

    def _evaluate_epoch(self, stage: Stage) -> dict[str, Any]:
        values: dict[str, Any] = {}
        splits = self.data
        for name, data, truth in (
            ("train", splits.shown, splits.shown_truth),
            ("validation", splits.validation, splits.validation_truth),
        ):
            predicted = predict(self.averaged, data, stage)
            scores = score_actions(predicted.logits, data.action, truth.known)
            values |= scores.flat(f"moa/{name}")
            if name == "validation":
                free = score_actions(predicted.free, data.action, truth.known)
                shown = {"top1": free.top1, "top3": free.top3, "ce": free.cross_entropy, "ece": free.ece}
                values |= {f"moa/validation/free_{k}": v for k, v in shown.items()}
                if stage == self.final_stage:
                    values["score"] = -scores.cross_entropy
                self._tell(scores, predicted, data)
        if self.averaged.vae is not None:
            values |= {f"vae/validation/{k}": v for k, v in vae_scores(self.averaged, splits.validation).items()}
        return values

    def _tell(self, scores: ActionScores, predicted: Prediction, data: GoalData) -> None:
        if self.folder is not None:
            write_evaluation(self.folder, self.step, scores, predicted.logits, data.action, "validation")
        if self.say is not None:
            self.say(f"[MOA] epoch {self.step}: top1={scores.top1:.4f}, top3={scores.top3:.4f}")
            if scores.alarm:
                self.say(f"[MOA] alarm: cross-entropy {scores.cross_entropy:.3f} is above ln 7, worse than no model")


def _active(code: Code) -> Tensor:
    return code.mean.new_tensor(float(active_units(code.mean.detach())))
