"""Gymnasium adapters: the whole shoal, the original's single-fish wrapper, and many arenas at once."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from marlab.fish.envs.arena import Arena, checked
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.world import FishWorld
from marlab.lab.errors import UserError

METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}


def observation_space(cfg: SeaConfig, *rows: int) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape=(*rows, cfg.observation_size), dtype=np.float32)


class FishEscapeEnv(gym.Env[np.ndarray, np.ndarray]):
    """All N fish at once: observation [N, D] (dead rows zero), N actions, the mean reward over all N fish.

    `info["rewards"]` holds the reward of each fish and `info["alive_mask"]` who lives.
    """

    metadata = METADATA

    def __init__(self, render_mode: str | None = None, **settings: Any) -> None:
        """`settings` are fields of `SeaConfig`."""
        cfg = SeaConfig(**settings)
        self.arena = Arena(cfg)
        self.render_mode = _known(render_mode)
        self.observation_space = observation_space(cfg, cfg.num_fish)
        self.action_space = spaces.MultiDiscrete([sea.ACTION_COUNT] * cfg.num_fish)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        return self.arena.reset(self.np_random)  # the same stream as default_rng(seed)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        result = self.arena.step(action)
        info = {**result.info, "rewards": result.reward}
        return result.observation, float(result.reward.mean()), result.terminated, result.truncated, info

    def render(self) -> np.ndarray | None:
        return self.arena.picture() if self.render_mode == "rgb_array" else None


class FishEscapeSingleEnv(gym.Env[np.ndarray, np.int64]):
    """The original's training environment: watch one living fish, copy its action to all, earn the mean reward.

    The original's rules are the default; any field of `SeaConfig` can be given to change that.
    """

    metadata = METADATA

    def __init__(
        self,
        render_mode: str | None = None,
        obs_sampling: Literal["round_robin", "random"] = "round_robin",
        sampling_seed: int | None = None,
        **settings: Any,
    ) -> None:
        if obs_sampling not in ("round_robin", "random"):
            raise UserError(f"obs_sampling is {obs_sampling!r}; it must be round_robin or random.")
        cfg = SeaConfig(**{**COMPAT_SWITCHES, **settings})
        self.arena = Arena(cfg)
        self.render_mode = _known(render_mode)
        self.obs_sampling = obs_sampling
        self.observation_space = observation_space(cfg)
        self.action_space = spaces.Discrete(sea.ACTION_COUNT)
        self._sampler = np.random.default_rng(sampling_seed)
        self._pointer = 0
        self._survival_sum = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._sampler = np.random.default_rng([seed, 1])
        rows, info = self.arena.reset(self.np_random)
        self._pointer, self._survival_sum = 0, 0.0
        return self._watch(rows, info), info

    def step(self, action: np.int64 | int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        fish = self.arena.cfg.num_fish
        given = np.asarray(action)
        if given.ndim or given.dtype.kind not in "iu":
            raise UserError(f"The action is {action!r}; expected one whole number from 0 to {sea.HOLD}.")
        result = self.arena.step(np.full(fish, given))
        info, gain = dict(result.info), float(result.reward.mean())
        self._survival_sum += info["survival_rate"]
        survival = self._survival_sum / info["timestep"]
        over = result.terminated or result.truncated
        info.update(
            avg_survival_rate=survival, avg_num_alive=survival * fish, single_reward=gain,
            final_num_alive=info["num_alive"] if over else None,
        )  # fmt: skip
        return self._watch(result.observation, info), gain, result.terminated, result.truncated, info

    def render(self) -> np.ndarray | None:
        return self.arena.picture() if self.render_mode == "rgb_array" else None

    def enqueue_prewarm_velocity(self, velocity: tuple[float, float], front: bool = False) -> None:
        self.arena.enqueue_prewarm_velocity(velocity, front)

    def _watch(self, rows: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """The observation of the next fish in turn (or of a random one); notes its index in `info`."""
        living = np.flatnonzero(info["alive_mask"])
        if not len(living):
            info["sampled_fish_index"] = -1
            return np.zeros(rows.shape[1], dtype=np.float32)
        if self.obs_sampling == "round_robin":
            place = self._pointer % len(living)
            self._pointer = (place + 1) % len(living)
        else:
            place = int(self._sampler.integers(len(living)))
        info["sampled_fish_index"] = int(living[place])
        return rows[living[place]]


def _known(render_mode: str | None) -> str | None:
    if render_mode not in (None, "rgb_array"):
        raise UserError(f"render_mode is {render_mode!r}; it must be None or rgb_array.")
    return render_mode


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
        chosen = checked(actions, self.num_envs, self.world.fish)
        result = self.world.step(torch.as_tensor(chosen, device=self.world.device))
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
