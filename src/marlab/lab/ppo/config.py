"""What PPO learns with, and how its step size falls; free of torch, so that flags and help come at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from marlab.lab.errors import UserError

Activation = Literal["tanh", "relu", "gelu", "silu"]
LrSchedule = Literal["constant", "linear", "cosine", "warm_cosine"]


@dataclass(frozen=True)
class PPOConfig:
    """What PPO learns with. Schedules take the progress of the whole run, 0 to 1."""

    n_steps: int = 128
    """Steps per rollout and row."""
    n_epochs: int = 4
    """Passes over each rollout."""
    batch_size: int = 4096
    """Acting rows per gradient step."""
    learning_rate: float = 3e-4
    """Adam's step size at the start."""
    lr_schedule: LrSchedule = "constant"
    """How the step size falls to zero over the run; warm_cosine falls to one half within a fifth, then slowly."""
    gamma: float = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    """Mixing of short and long returns in the advantage."""
    clip_range: float = 0.2
    """How far the probability ratio may move from 1 before it stops paying."""
    clip_range_value: float | None = None
    """How far a value may move per update; None does not clip it."""
    value_coef: float = 0.5
    """Weight of the value loss."""
    entropy_coef: float = 0.0
    """Weight of the entropy bonus."""
    max_grad_norm: float = 0.5
    """Gradients longer than this are scaled down."""
    normalize_advantage: bool = True
    """Give the advantages of a minibatch mean 0 and deviation 1."""
    target_kl: float | None = None
    """Stop an update when the mean KL divergence passes 1.5 times this."""
    adam_eps: float = 1e-5
    """Adam's denominator term."""
    compile: bool = False
    """Compile the networks' passes with torch.compile."""
    cuda_graph: bool = False
    """On CUDA, record a gradient step once and replay it: pays where minibatches are small."""

    def __post_init__(self) -> None:
        for name in ("n_steps", "n_epochs", "batch_size", "learning_rate", "max_grad_norm", "clip_range", "adam_eps"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} is {getattr(self, name)}, expected more than 0.")
        for name in ("gamma", "gae_lambda"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise UserError(f"{name} is {getattr(self, name)}, expected a value from 0 to 1.")
        if self.cuda_graph and self.target_kl is not None:
            raise UserError("cuda_graph cannot be combined with target_kl: a replayed step cannot decide to stop.")


def scheduled_lr(config: PPOConfig, progress: float) -> float:
    """The step size at `progress` (0 to 1) of the run."""
    return config.learning_rate * lr_scale(config.lr_schedule, progress)


def lr_scale(schedule: LrSchedule, progress: float) -> float:
    """The factor on the step size at `progress` (0 to 1) of the schedule."""
    if schedule == "constant":
        return 1.0
    if schedule == "linear":
        return 1.0 - progress
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * progress))
    if progress <= 0.2:  # warm_cosine: a quick straight fall to one half, then a cosine to nothing
        return 1.0 - 2.5 * progress
    return 0.25 * (1.0 + math.cos(math.pi * (progress - 0.2) / 0.8))
