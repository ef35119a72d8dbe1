"""One arena with an episode's bookkeeping: what the Gymnasium and PettingZoo adapters share."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from marlab.fish.envs.frame import paint
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState, advance
from marlab.fish.sea.perception import neighbours, observe
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import Override, seeded_reset
from marlab.fish.sea.rewards import reward


class ArenaStep(NamedTuple):
    """What a step brought; per fish, as NumPy arrays."""

    observation: np.ndarray  # [N, D] float32, zero rows for the dead
    reward: np.ndarray  # [N] float32
    died: np.ndarray  # [N] bool
    terminated: bool  # the episode is over for good
    truncated: bool  # the episode was cut by the time limit
    info: dict[str, Any]


class Arena:
    """A single sea driven step by step on the host, seeded like the probes."""

    def __init__(self, cfg: SeaConfig) -> None:
        self.cfg = cfg
        self.prewarm: deque[tuple[float, float]] = deque()
        self.state: SeaState | None = None
        self._step_one_deaths: list[dict[str, Any]] = []

    @torch.no_grad()
    def reset(self, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode from `rng`; the front of the prewarm queue, if any, is the predator's velocity."""
        override = Override(self.prewarm.popleft()) if self.prewarm else None
        self.state, [record] = seeded_reset([rng], self.cfg, overrides=[override])
        self._step_one_deaths = []
        return self.observation(), {**self.info(), "pre_roll_stats": record}

    @torch.no_grad()
    def step(self, actions: np.ndarray) -> ArenaStep:
        """Actions of all N fish; those of the dead are ignored."""
        before = self._begun()
        chosen = torch.as_tensor(np.asarray(actions), dtype=torch.int64)[None]
        state = self.state = advance(before, chosen, predator_step(self.cfg))
        social = neighbours(state, self.cfg)
        gain = reward(state, before.alive, self.cfg, social).total()[0]
        died = (before.alive & ~state.alive)[0]
        if int(state.t) == 1:
            self._step_one_deaths = [self._death_record(state, index) for index in died.nonzero()[:, 0].tolist()]
        nobody, late = not bool(state.alive.any()), int(state.t) >= sea.EPISODE_STEPS
        by_limit = late and not nobody
        cut = by_limit and self.cfg.episode_end != "terminated"
        info = self.info()
        if nobody or late:
            info["death_timesteps"] = state.death_step[0].numpy().copy()
        rows = observe(state, self.cfg, social)[0].numpy()
        return ArenaStep(rows, gain.numpy(), died.numpy(), (nobody or late) and not cut, cut, info)

    def observation(self) -> np.ndarray:
        return observe(self._begun(), self.cfg)[0].numpy()

    def info(self) -> dict[str, Any]:
        state = self._begun()
        alive, deaths = state.alive[0], state.death_step[0]
        dead = deaths[deaths > 0]
        return {
            "num_alive": int(alive.sum()), "survival_rate": float(alive.float().mean()), "timestep": int(state.t),
            "first_death_step": int(dead.min()) if len(dead) else -1, "step_one_deaths": self._step_one_deaths,
            "alive_mask": alive.numpy().copy(),
        }  # fmt: skip

    def picture(self) -> np.ndarray:
        return paint(self._begun())

    # ------------------------------------------------------------ dials of the original

    def set_density_penalty(self, coef: float, target: float | None = None) -> None:
        target = self.cfg.density_target if target is None else target
        self.cfg = replace(self.cfg, density_penalty_coef=coef, density_target=target)

    def set_escape_boost_speed(self, speed: float) -> None:
        self.cfg = replace(self.cfg, escape_boost_speed=speed)

    def enqueue_prewarm_velocity(self, velocity: tuple[float, float], front: bool = False) -> None:
        (self.prewarm.appendleft if front else self.prewarm.append)((float(velocity[0]), float(velocity[1])))

    def _begun(self) -> SeaState:
        if self.state is None:
            raise RuntimeError("Call reset() before using the environment.")
        return self.state

    @staticmethod
    def _death_record(state: SeaState, index: int) -> dict[str, Any]:
        return {
            "fish_idx": index, "predator_index": 0, "fish_position": state.positions[0, index].tolist(),
            "predator_position": state.predator_position[0].tolist(),
            "predator_velocity": state.predator_velocity[0].tolist(), "timestep": 1,
        }  # fmt: skip
