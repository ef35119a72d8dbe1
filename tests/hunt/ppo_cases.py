"""Small PPO trainings that the tests share."""

from __future__ import annotations

from dataclasses import replace

import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.ppo.config import NetworkConfig, PPOTrainConfig
from marlab.hunt.ppo.learners import SeedWorld
from marlab.lab.ppo.config import PPOConfig
from tests.hunt.helpers import seeded

TINY = game_config("msh_tiny")
SMALL = PPOConfig(n_steps=12, n_epochs=2, batch_size=64, learning_rate=1e-3, gamma=0.95)


def small(**changes: object) -> PPOTrainConfig:
    base = PPOTrainConfig(
        game=TINY, num_envs=8, total_steps=12 * 8 * 4, ppo=SMALL, network=NetworkConfig(hidden=(16,)), eval_episodes=20
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def play_random(world: SeedWorld, steps: int) -> None:
    generator = seeded(7)
    for _ in range(steps):
        mask = world.observe().mask
        assert mask is not None
        noise = torch.rand(mask.shape, generator=generator)
        world.step((mask * noise).argmax(-1))
