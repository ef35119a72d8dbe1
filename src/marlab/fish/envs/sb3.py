"""Many arenas for stable-baselines3: one batched world behind its `VecEnv`, no processes, no copies of environments.

    from stable_baselines3 import PPO
    from marlab.fish.envs.sb3 import FishVecEnv

    PPO("MlpPolicy", FishVecEnv(256, num_fish=10)).learn(1_000_000)

Per arena like `FishEscapeEnv`: the policy moves the whole shoal, the reward is the mean over all fish.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from marlab.fish.envs.arena import checked
from marlab.fish.envs.gym import observation_space
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.world import FishWorld
from marlab.lab.sb3 import BatchEnv


class FishVecEnv(BatchEnv):
    """Arenas that begin anew at once, as stable-baselines3 expects; starts come from the world's own generator."""

    def __init__(self, num_envs: int = 1, device: str = "cpu", seed: int = 0, **settings: Any) -> None:
        """`settings` are fields of `SeaConfig`."""
        self.world = FishWorld(SeaConfig(**settings), num_envs, seed=seed, device=device)
        cfg = self.world.cfg
        space = observation_space(cfg, cfg.num_fish)
        super().__init__(num_envs, space, spaces.MultiDiscrete([sea.ACTION_COUNT] * cfg.num_fish))
        self._actions = torch.zeros(num_envs, cfg.num_fish, dtype=torch.int64)

    def reset(self) -> VecEnvObs:
        """Begin all episodes; a seed given before fixes every start from here on."""
        if self._seeds[0] is not None:
            self.world.generator.manual_seed(self._seeds[0])
            self.world.refill()
        self._reset_seeds()
        self.world.reset()
        return self._rows()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = torch.as_tensor(checked(actions, self.num_envs, self.world.fish), device=self.world.device)

    def step_wait(self) -> VecEnvStepReturn:
        world = self.world
        result = world.step(self._actions)
        gain = (result.reward.sum(1) / world.fish).cpu().numpy()
        over = world.waiting.cpu().numpy().copy()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if over.any():
            last, cut = self._rows(), result.truncated.any(1).cpu().numpy()
            alive, steps = world.state.alive.sum(1).tolist(), world.state.t.tolist()
            for arena in np.flatnonzero(over):
                infos[arena] = {
                    "terminal_observation": last[arena], "TimeLimit.truncated": bool(cut[arena]),
                    "num_alive": alive[arena], "survival_rate": alive[arena] / world.fish, "timestep": steps[arena],
                }  # fmt: skip
            world.renew()
        return self._rows(), gain, over, infos

    def _rows(self) -> np.ndarray:
        return self.world.observe().cpu().numpy().copy()
