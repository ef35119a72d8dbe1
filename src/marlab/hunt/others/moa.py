"""The model of other agents (MOA): what will player j do, given its own view, the time and a goal.

One model serves pretraining on offline data, beliefs, and every node of a planner's trees, so it is small: two layers
over the rows of `game.rows`, one network per observer that is told which other it looks at. Heads return logits, and
the loss refuses probabilities: a softmax applied twice cannot learn, and looks like a hard problem instead of a fault.

Letters: P copies (observers, of all seeds), S = n - 1 others of an observer ("slots": slot k sits k + 1 places after
the observer), N rows of a copy, W row width, G goals tried at once, V goal width, A actions, X hidden width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import row_layout
from marlab.hunt.game.rules import Game
from marlab.hunt.others.config import Balance
from marlab.hunt.others.copies import BatchedLinear, ObservationLayer
from marlab.lab.ppo.choices import apply_mask

Tensors = tuple[Tensor, ...] | list[Tensor]
TARGET_DECAY = 0.995
"""Decay of the averaged weights that planners and beliefs use."""


class Moa(nn.Module):
    """The models of P observers, each about its n - 1 others: what they do given a goal, and without one.

    Goals enter after the first two layers, so that many can be tried on one situation, and inside a search tree, where
    they do not change, what they add is worked out once (`wishes`).
    """

    def __init__(
        self, game: GameConfig, goal_width: int, hidden: int, generators: Sequence[torch.Generator], *,
        paths: bool = False, free: bool = False,
    ) -> None:  # fmt: skip
        """free: with a head that predicts without any goal, for comparison."""
        super().__init__()
        self.copies, self.slots, self.goal_width = len(generators), game.players - 1, goal_width
        if self.slots < 1:
            raise ValueError("a model of others needs others: this game has one player")
        self.sight = ObservationLayer(row_layout(game, paths), hidden, generators)
        self.place = nn.Parameter(torch.zeros(self.copies, 1, self.slots, hidden))
        self.middle = BatchedLinear(hidden, hidden, generators, math.sqrt(2.0))
        weights = [torch.empty(goal_width, hidden).normal_(0.0, 1.0, generator=g) for g in generators]
        self.wish = nn.Parameter(torch.stack(weights))  # [P, V, X]
        self.actor = BatchedLinear(hidden, game.actions, generators, 0.01)
        self.free = BatchedLinear(hidden, game.actions, generators, 0.01) if free and goal_width else None

    def wishes(self, goals: Tensor) -> Tensor:
        """[P, *S, X] what goals [P, *S, V] add to the second layer."""
        return torch.bmm(goals.flatten(1, -2), self.wish).unflatten(1, goals.shape[1:-1])

    def state(self, rows: Tensor, time: Tensor) -> Tensor:
        """[P, N, S, X] from others' own views [P, N, S, W] and times [P, N] (or [P, N, S] of separate steps)."""
        lead = rows.shape[:3]
        wide = time if time.dim() == 3 else time.unsqueeze(2).expand(lead)
        seen = self.sight(rows.flatten(1, 2), wide.flatten(1, 2)).unflatten(1, lead[1:])
        return self.middle(torch.relu(seen + self.place).flatten(1, 2)).unflatten(1, lead[1:])

    def given(self, rows: Tensor, time: Tensor, wishes: Tensor) -> Tensor:
        """Logits [P, N, S, A] under one goal for each other, of which `wishes` [P, N, S, X] was made."""
        x = torch.relu(self.state(rows, time) + wishes)
        return self.actor(x.flatten(1, 2)).unflatten(1, x.shape[1:3])

    def forward(self, rows: Tensor, time: Tensor, wishes: Tensor) -> Tensor:
        """Logits [P, N, S, G, A] under goals of which `wishes` [P, N, S, G, X] (N and S may be 1) was made."""
        x = torch.relu(self.state(rows, time).unsqueeze(3) + wishes)
        return self.actor(x.flatten(1, 3)).unflatten(1, x.shape[1:4])

    def rows(self, rows: Tensor, time: Tensor, goals: Tensor, slot: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [R, G, A] given goals [R, G, V] and [R, A] without one, of single rows [R, W] in slots [R].

        For a model with one copy, as pretraining has it.
        """
        seen = self.sight(rows.unsqueeze(0), time.unsqueeze(0)) + self.place[:, 0, slot]
        state = self.middle(torch.relu(seen))  # [1, R, X]
        x = torch.relu(state.unsqueeze(2) + self.wishes(goals.unsqueeze(0)))  # [1, R, G, X]
        given = self.actor(x.flatten(1, 2)).view(*goals.shape[:2], -1)
        return given, given[:, 0] if self.free is None else self.free(torch.relu(state)).squeeze(0)


def opponent_seats(game: Game) -> Tensor:
    """[n, n - 1] the players that each observer sees, in its own order."""
    return game.ego[:, 1:]


def masked_mixture(logits: Tensor, legal: Tensor, weight: Tensor) -> Tensor:
    """Log-probabilities [*S, A] of the mixture of predictions [*S, K, A] with goal probabilities `weight` [*S, K]."""
    log_p = apply_mask(logits, legal.unsqueeze(-2)).log_softmax(-1)
    return (log_p + weight.clamp_min(1e-30).log().unsqueeze(-1)).logsumexp(-2)


# --- averaged weights -----------------------------------------------------------------------------------------------


def averaged_copy(model: nn.Module) -> AveragedModel:
    """A copy of a model that follows its weights slowly; call `update_parameters(model)` after every step.

    It follows fast in the first steps, when old weights are worth little: decay (1 + k) / (10 + k) after k steps, at
    most TARGET_DECAY.
    """

    @torch.no_grad()
    def follow(slow: Tensors, fast: Tensors, steps: Tensor | int) -> None:
        k = float(steps)
        torch._foreach_lerp_(slow, fast, 1.0 - min(TARGET_DECAY, (1.0 + k) / (10.0 + k)))

    return AveragedModel(model, multi_avg_fn=follow)


# --- the loss -----------------------------------------------------------------------------------------------------


class MoaLoss(NamedTuple):
    """Loss of a batch and its parts, in nats."""

    total: Tensor  # what is minimised
    given: Tensor  # cross-entropy with the goal, unweighted: the figure to compare with a floor
    free: Tensor  # cross-entropy without a goal, unweighted
    entropy: Tensor  # mean entropy of the predictions


def action_loss(
    given: Tensor, free: Tensor | None, actions: Tensor, mask: Tensor, goal_weight: Tensor | None = None, *,
    balance: Balance = "sqrt", legacy_double_softmax: bool = False,
) -> MoaLoss:  # fmt: skip
    """Cross-entropy of logits [R, G, A] (and [R, A] without a goal) on executed actions [R] with legal `mask` [R, A].

    goal_weight: [R, G] how probable each goal is; a certain goal is one-hot. balance: rare actions weigh more.
    legacy_double_softmax feeds probabilities to the cross-entropy, as the original did.
    """
    refuse_probabilities(given)
    weight = balance_weights(actions, given.shape[-1], balance)  # [R]
    masked = apply_mask(given, mask.unsqueeze(1))
    scores = masked.softmax(-1) if legacy_double_softmax else masked
    each = _each(scores, actions.unsqueeze(1).expand(given.shape[:2]))  # [R, G]
    each = each.mean(1) if goal_weight is None else (each * goal_weight).sum(1)
    log_p = masked.log_softmax(-1)
    spread = -(log_p.exp() * log_p).sum(-1).mean()  # a forbidden action adds 0 * (lowest finite) = 0
    total = (weight * each).mean()
    if free is None:
        return MoaLoss(total, each.mean().detach(), each.mean().detach(), spread.detach())
    without = _each(apply_mask(free, mask), actions)
    total = total + (weight * without).mean()
    return MoaLoss(total, each.mean().detach(), without.mean().detach(), spread.detach())


def refuse_probabilities(logits: Tensor) -> None:
    """Raise if every row [*, A] is a probability distribution: a softmax was applied before the loss."""
    x = logits.detach()
    if x.numel() and bool((x >= 0).all() & ((x.sum(-1) - 1).abs() < 1e-3).all()):
        raise ValueError("the loss was given probabilities; it takes logits, a softmax applied twice cannot learn")


def balance_weights(actions: Tensor, classes: int, balance: Balance) -> Tensor:
    """[R] weights (1 / frequency) ** p of the actions' classes with mean 1 over the batch; p is 0, 1/2 or 1."""
    if balance == "none":
        return torch.ones(actions.shape, device=actions.device)
    frequency = torch.bincount(actions, minlength=classes) / actions.numel()
    weight = frequency.clamp_min(1e-12).pow(-0.5 if balance == "sqrt" else -1.0)[actions]
    return weight / weight.mean()


def _each(scores: Tensor, actions: Tensor) -> Tensor:
    """Cross-entropy of every row [*S, A] -> [*S]."""
    return cross_entropy(scores.flatten(0, -2), actions.flatten(), reduction="none").view(actions.shape)
