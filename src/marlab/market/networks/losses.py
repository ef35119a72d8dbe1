"""Losses of offline learning, as pure functions of network outputs and labels.

Every masked term averages over the samples it is about, so it does not shrink when they are few, and is zero with a
zero gradient when there are none.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from marlab.market.logs.worldlog import REJECT
from marlab.market.networks import QTransform, ResidualLoss
from marlab.market.networks.executor import L3Output

RESIDUAL_UNITS = (10.0, 5.0)
"""Residuals of quantity and price are compared in these units."""


def transform_quantity(quantity: Tensor, transform: QTransform) -> Tensor:
    """phi(Q). Below zero it goes on as a straight line: a negative quantity costs, and its gradient does not vanish."""
    if transform == "none":
        return quantity
    positive = quantity.clamp_min(0)
    curved = torch.log1p(positive) if transform == "log1p" else (positive + 1e-6).sqrt() - 1e-3
    return curved + quantity.clamp_max(0)


def goal_mask(roles: Tensor) -> Tensor:
    """[B, 16] which numbers of a goal the factory can trade on, from roles [B, 2]."""
    return roles[:, [0, 0, 1, 1] * 4]


class GoalLoss(NamedTuple):
    loss: Tensor  # mean over samples of each sample's weighted mean square
    square: Tensor  # sum over the batch of weighted squares
    weight: Tensor  # sum over the batch of weights; square / weight is the reported mse


def goal_loss(
    mean: Tensor, label: Tensor, roles: Tensor, transform: QTransform = "none", q_weight: float = 1.0
) -> GoalLoss:
    """Behaviour cloning of L2: mean, label [B, 16], roles [B, 2]."""
    is_quantity = torch.arange(16, device=mean.device) % 2 == 0
    weight = goal_mask(roles) * torch.where(is_quantity, q_weight, 1.0)
    curved = transform_quantity(mean, transform) - transform_quantity(label, transform)
    squares = weight * torch.where(is_quantity, curved, mean - label) ** 2
    loss = (squares.sum(1) / weight.sum(1).clamp_min(1)).mean()
    return GoalLoss(loss, squares.sum(), weight.sum())


class ActionLabels(NamedTuple):
    """What the expert did: each [B]."""

    op: Tensor  # int64
    residual: Tensor  # [B, 2]
    day: Tensor  # int64
    day_valid: Tensor  # bool: the day can be taught


class ActionLoss(NamedTuple):
    """Terms of behaviour cloning of L3; `total` is their sum."""

    total: Tensor
    op: Tensor
    quantity: Tensor
    price: Tensor
    day: Tensor


def action_loss(
    output: L3Output, labels: ActionLabels, weight: Tensor | None = None, residual_loss: ResidualLoss = "mse"
) -> ActionLoss:
    """Operator of all decisions; residual and day of those that made an offer. `weight` [B] multiplies every term."""
    weight = torch.ones_like(output.residual[:, 0]) if weight is None else weight
    op = functional.cross_entropy(output.op_logits, labels.op, reduction="none")
    offers = (labels.op == REJECT) & labels.day_valid
    units = output.residual.new_tensor(RESIDUAL_UNITS)
    error = (output.residual - labels.residual) / units
    if residual_loss == "mse":
        apart = error**2
    else:  # quadratic near zero, then linear: a few large lots do not rule the gradient
        apart = functional.huber_loss(error, torch.zeros_like(error), reduction="none", delta=0.1) * 2
    day = functional.cross_entropy(output.time_logits, labels.day, reduction="none")
    # a forbidden day has an infinite loss; such labels are not taught, and must not turn 0 * inf into NaN
    day = torch.where(offers, day, 0.0)
    everyone = torch.ones_like(offers)
    terms = [
        _mean(op, everyone, weight),
        _mean(apart[:, 0], offers, weight),
        _mean(apart[:, 1], offers, weight),
        _mean(day, offers, weight),
    ]
    return ActionLoss(sum(terms[1:], terms[0]), *terms)


def _mean(values: Tensor, about: Tensor, weight: Tensor) -> Tensor:
    return (values * weight * about).sum() / about.sum().clamp_min(1)


def advantage_weights(advantage: Tensor, beta: float = 1.0, largest: float = 20.0) -> tuple[Tensor, Tensor]:
    """Weights [B] of advantage-weighted regression, mean 1 over the batch, and the raw ones, capped at `largest`."""
    raw = (advantage / beta).clamp_max(torch.tensor(largest).log().item()).exp()
    return raw * (len(raw) / raw.sum()), raw


def standardise(values: Tensor) -> Tensor:
    """Mean 0, standard deviation 1 over the batch; zeros if all are equal."""
    centred = values - values.mean()
    spread = centred.square().mean().sqrt()
    return torch.where(spread > 1e-6, centred / spread.clamp_min(1e-6), torch.zeros_like(centred))


class WeightLoss(NamedTuple):
    loss: Tensor  # mean cross-entropy of the rounds
    kl: Tensor  # mean divergence from the teacher
    agree: Tensor  # share of rounds with the same first thread


def weight_loss(scores: Tensor, teacher: Tensor, mask: Tensor) -> WeightLoss:
    """Distillation of L4: scores, teacher weights and mask [B, K]; rounds without threads must not be in the batch."""
    teacher = teacher * mask
    teacher = teacher / teacher.sum(1, keepdim=True).clamp_min(1e-12)
    logs = torch.log_softmax(scores, 1).clamp_min(torch.tensor(1e-8).log().item())
    cross = -(teacher * logs).sum(1)
    entropy = -(teacher * teacher.clamp_min(1e-12).log()).sum(1)
    agree = (scores.masked_fill(~mask, -torch.inf).argmax(1) == teacher.argmax(1)).float().mean()
    return WeightLoss(cross.mean(), (cross - entropy).mean(), agree)
