"""Gymnasium adapter for many arenas at once, in one batched world."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from marlab.fish.envs.gym import METADATA, observation_space
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.world import FishWorld
from marlab.lab.errors import UserError

VECTOR_METADATA: dict[str, Any] = {**METADATA, "autoreset_mode": AutoresetMode.NEXT_STEP}


class FishVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many arenas in one batched world, next-step autoreset; per arena like `FishEscapeEnv`.

    Starts come from the world's own generator, so an arena here does not repeat `FishEscapeEnv` with the same seed.
    """

    metadata = VECTOR_METADATA

    def __init__(self, num_envs: int = 1, device: str = "cpu", render_mode: str | None = None, **settings: Any) -> None:
        if render_mode is not None:
            raise UserError("The vector environment draws no pictures; use FishEscape-v0 for render_mode=rgb_array.")
        self.num_envs = num_envs
        self.world = FishWorld(SeaConfig(**settings), num_envs, device=device)
        cfg = self.world.cfg
        self.single_observation_space = observation_space(cfg, cfg.num_fish)
        self.single_action_space = spaces.MultiDiscrete([sea.ACTION_COUNT] * cfg.num_fish)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """A seed fixes every start from here on; of a list of seeds the first counts."""
        if seed is not None:
            self.world.generator.manual_seed(seed[0] if isinstance(seed, list) else seed)
            self.world.refill()
        self.world.reset()
        return self._rows(), self._info()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        fish = self.world.state.exists.sum(1)
        chosen = torch.as_tensor(np.asarray(actions), dtype=torch.int64, device=self.world.device)
        result = self.world.step(chosen)
        over = self.world.waiting
        truncated = over & result.truncated.any(1)
        gain = result.reward.sum(1) / fish
        flags = ((over & ~truncated).cpu().numpy(), truncated.cpu().numpy())
        return self._rows(), gain.double().cpu().numpy(), *flags, self._info(rewards=result.reward)

    def _rows(self) -> np.ndarray:
        return self.world.observe().cpu().numpy().copy()

    def _info(self, **more: torch.Tensor) -> dict[str, Any]:
        state = self.world.state
        values = {"alive_mask": state.alive, "num_alive": state.alive.sum(1), "timestep": state.t, **more}
        everywhere = np.ones(self.num_envs, dtype=bool)
        info: dict[str, Any] = {}
        for name, value in values.items():
            info[name], info[f"_{name}"] = value.cpu().numpy().copy(), everywhere
        return info
