"""A training of the smallest size, for tests."""

from __future__ import annotations

from typing import Any

import torch

from marlab.market.online.ground_vector import Ground
from marlab.market.online.settings import OnlineConfig
from marlab.market.online.trainer import OnlineTrainer

CPU = torch.device("cpu")


def tiny(**changes: Any) -> OnlineConfig:
    """Worlds of 2 x 3 factories for some days."""
    values: dict[str, Any] = {
        "worlds": 3, "generations": 2, "generation_days": 2, "rollout_days": 1, "days": (5, 5), "shapes": ("2x3",),
        "learners": 2, "hidden": (16,), "steer_every": 0, "steer_worlds": 3, "steer_days": 5, "batch_size": 64,
        "opponents": ("rule", "SyncRandomStdAgent", "RandomStdAgent"), "past_selves": 0, "device": "cpu",
    }  # fmt: skip
    return OnlineConfig(**values | changes)


def ground(dtype: torch.dtype = torch.float32, **changes: Any) -> tuple[OnlineTrainer, Ground]:
    """A trainer and its first worlds."""
    config = tiny(**changes)
    trainer = OnlineTrainer(config, CPU)
    return trainer, Ground(config, trainer.net, trainer.pool, 0, CPU, dtype)
