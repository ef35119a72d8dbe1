"""A real but tiny PPO training, used by the resume and fault tests (also as a process that gets killed)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from marlab.lab.ppo.config import PPOConfig, scheduled_lr
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from tests.lab.ppo.toys import Identity


@dataclass(frozen=True)
class TinyConfig:
    """A training of fractions of a second."""

    seed: int = 1
    """Seed of everything."""
    total: int = 12
    """Iterations."""


class TinyTrainer:
    def __init__(self, config: TinyConfig) -> None:
        self.config, self.step, self.total = config, 0, config.total
        self.rngs = Rngs(config.seed)
        net = ActorCritic(5, (2, 3), (16,), generator=self.rngs.torch("init"))
        ppo = PPOConfig(n_steps=16, n_epochs=2, batch_size=64, lr_schedule="linear", learning_rate=3e-3)
        self.ppo = PPO(net, ppo, self.rngs.torch("policy"))
        self.world = Identity(8, (2, 3), 10, self.rngs.torch("world"))

    def iterate(self) -> Mapping[str, Any]:
        rollout = self.ppo.collect(self.world)
        reward = rollout.reward[rollout.acting].mean().item()
        lr = scheduled_lr(self.ppo.config, self.step / self.total)
        stats = self.ppo.update(rollout, lr, 0.01)
        self.step += 1
        return {"reward/mean": reward, **stats}

    def state_dict(self) -> dict[str, Any]:
        parts = {"ppo": self.ppo.state_dict(), "world": self.world.state_dict(), "rngs": self.rngs.state_dict()}
        return {"step": self.step, **parts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        self.ppo.load_state_dict(state["ppo"])
        self.world.load_state_dict(state["world"])
        self.rngs.load_state_dict(state["rngs"])


def train(config: TinyConfig, folder: Path, resume: bool, time_limit: float | None = None) -> Run:
    torch.set_num_threads(1)
    run = Run.open("tiny", config, RunOptions(output_dir=folder, resume=resume, time_limit=time_limit))
    with run:
        store = CheckpointStore(run.checkpoints, "tiny", keep=Keep(last=3))
        drive(TinyTrainer(config), run, store, save_every=2, unit="iterations", quiet=True)
    return run
