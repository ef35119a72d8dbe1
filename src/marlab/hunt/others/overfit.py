"""The first test of any predictor: can it learn one batch by heart? If not, no amount of data will help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from marlab.hunt.others.data import GoalData
from marlab.hunt.others.moa import Moa, action_loss
from marlab.hunt.others.models import ModelSpec
from marlab.lab.runs.rng import Rngs

if TYPE_CHECKING:
    from marlab.hunt.others.config import PretrainGoalsConfig

ROWS = 256
LR = 3e-3
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
    moa = Moa(spec.game, spec.goal_width, shared=spec.share_moa, generator=rngs.torch("overfit init", "cpu"))
    moa.to(device)
    picked = torch.randperm(data.rows, generator=rngs.torch("overfit", "cpu"))[:rows].to(device)
    planes, mask, time, action = (x[picked] for x in (data.planes, data.mask, data.time, data.action))
    goals, weight = _goals(spec, data, picked)
    floor = label_noise(planes, data.goal[picked] if weight is not None else None, action)
    optimiser = torch.optim.Adam(moa.parameters(), LR)
    loss, step = float("inf"), 0
    for step in range(1, most_steps + 1):
        given, _ = moa.rows(planes, time, goals, data.slot[picked])
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
