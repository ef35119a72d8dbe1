"""One arena with an episode's bookkeeping: what the Gymnasium and PettingZoo adapters share."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from marlab.fish.envs.frame import paint
from marlab.fish.envs.native import native_sea
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState, advance
from marlab.fish.sea.perception import neighbours, observe
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import Override, seeded_reset
from marlab.fish.sea.rewards import reward
from marlab.lab.errors import UserError


class ArenaStep(NamedTuple):
    """What a step brought; per fish, as NumPy arrays."""

    observation: np.ndarray  # [N, D] float32, zero rows for the dead
    reward: np.ndarray  # [N] float32
    died: np.ndarray  # [N] bool
    terminated: bool  # the episode is over for good
    truncated: bool  # the episode was cut by the time limit
    info: dict[str, Any]


def checked(actions: np.ndarray, *shape: int) -> np.ndarray:
    """Actions as int64 of this shape, fish last; a sentence if some are missing, too many, or do not exist."""
    given = np.asarray(actions)
    if given.shape != shape:
        raise UserError(f"Actions have the shape {given.shape}; expected {shape}, one for every fish.")
    if given.dtype.kind not in "iu":
        raise UserError(f"Actions are {given.dtype}; expected whole numbers from 0 to {sea.HOLD}.")
    if given.min() < 0 or given.max() > sea.HOLD:
        raise UserError(f"Actions go from {given.min()} to {given.max()}; expected 0 to {sea.HOLD}.")
    return given.astype(np.int64, copy=False)


class Arena:
    """A single sea driven step by step on the host, seeded like the probes.

    Steps are made in C where that can be built (`native.py`), else with the tensors of `fish/sea`; the same within
    rounding.
    """

    def __init__(self, cfg: SeaConfig, native: bool = True) -> None:
        self.cfg = cfg
        self.prewarm: deque[tuple[float, float]] = deque()
        self._native = native_sea(cfg) if native else None
        self._state: SeaState | None = None
        self._begun, self._over = False, False
        self._step_one_deaths: list[dict[str, Any]] = []

    @property
    def state(self) -> SeaState | None:
        """The sea now, as a batch of one; none before the first reset."""
        if self._begun and self._native is not None:
            return self._native.state()
        return self._state

    @torch.no_grad()
    def reset(self, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode from `rng`; the front of the prewarm queue, if any, is the predator's velocity."""
        override = Override(self.prewarm.popleft()) if self.prewarm else None
        state, [record] = seeded_reset([rng], self.cfg, overrides=[override])
        self._begun, self._over, self._step_one_deaths = True, False, []
        if self._native is not None:
            self._native.begin(state)
        else:
            self._state = state
        return self.observation(), {**self.info(), "pre_roll_stats": record}

    @torch.no_grad()
    def step(self, actions: np.ndarray) -> ArenaStep:
        """Actions of all N fish; those of the dead are ignored."""
        chosen = self._checked(actions)
        rows, gain, died = self._step_native(chosen) if self._native is not None else self._step_tensors(chosen)
        info = self.info()
        step = info["timestep"]
        if step == 1:
            self._step_one_deaths = [self._death_record(index) for index in np.flatnonzero(died).tolist()]
            info["step_one_deaths"] = self._step_one_deaths
        nobody, late = info["num_alive"] == 0, step >= sea.EPISODE_STEPS
        cut = late and not nobody and self.cfg.episode_end != "terminated"
        if nobody or late:
            self._over = True
            info["death_timesteps"] = self._deaths().copy()
        return ArenaStep(rows, gain, died, (nobody or late) and not cut, cut, info)

    def _step_native(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        native = self._native
        assert native is not None
        native.actions[:] = actions
        native.move_fish()
        if self.cfg.predator_mode == "ballistic" and self.cfg.predator_pull == "north":
            native.let_fall()
        else:
            native.take_predators(predator_step(self.cfg)(native.state()))
        native.judge()
        return native.observation.copy(), native.reward.copy(), native.died.copy()

    def _step_tensors(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        before = self._state
        assert before is not None
        state = self._state = advance(before, torch.from_numpy(actions)[None], predator_step(self.cfg))
        social = neighbours(state, self.cfg)
        gain = reward(state, before.alive, self.cfg, social).total()[0]
        died = (before.alive & ~state.alive)[0]
        return observe(state, self.cfg, social)[0].numpy(), gain.numpy(), died.numpy()

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """The actions as [N] int64; a sentence without a running episode."""
        if not self._begun or self._over:
            raise UserError("Call reset(): the episode is over." if self._over else "Call reset() before step().")
        return checked(actions, self.cfg.num_fish)

    def observation(self) -> np.ndarray:
        """[N, D] float32"""
        if self._native is not None:
            self._need_begun()
            return self._native.observation.copy()
        return observe(self._now(), self.cfg)[0].numpy()

    def info(self) -> dict[str, Any]:
        native, fish = self._native, self.cfg.num_fish
        self._need_begun()
        if native is not None:
            count, step, first, alive = native.alive_count, native.t, native.first_death, native.alive.copy()
        else:
            state = self._now()
            alive, deaths = state.alive[0].numpy().copy(), state.death_step[0]
            dead = deaths[deaths > 0]
            count, step, first = int(alive.sum()), int(state.t), int(dead.min()) if len(dead) else -1
        return {
            "num_alive": count, "survival_rate": count / fish, "timestep": step, "first_death_step": first,
            "step_one_deaths": self._step_one_deaths, "alive_mask": alive,
        }  # fmt: skip

    def picture(self) -> np.ndarray:
        return paint(self._now())

    # ------------------------------------------------------------ dials of the original

    def set_density_penalty(self, coef: float, target: float | None = None) -> None:
        target = self.cfg.density_target if target is None else target
        self._set(replace(self.cfg, density_penalty_coef=coef, density_target=target))

    def set_escape_boost_speed(self, speed: float) -> None:
        self._set(replace(self.cfg, escape_boost_speed=speed))

    def _set(self, cfg: SeaConfig) -> None:
        self.cfg = cfg
        if self._native is not None:
            self._native.set(cfg)

    def enqueue_prewarm_velocity(self, velocity: tuple[float, float], front: bool = False) -> None:
        (self.prewarm.appendleft if front else self.prewarm.append)((float(velocity[0]), float(velocity[1])))

    def _need_begun(self) -> None:
        if not self._begun:
            raise UserError("Call reset() before using the environment.")

    def _now(self) -> SeaState:
        self._need_begun()
        state = self.state
        assert state is not None
        return state

    def _deaths(self) -> np.ndarray:
        return self._native.death_step if self._native is not None else self._now().death_step[0].numpy()

    def _death_record(self, index: int) -> dict[str, Any]:
        state = self._now()
        return {
            "fish_idx": index, "predator_index": 0, "fish_position": state.positions[0, index].tolist(),
            "predator_position": state.predator_position[0].tolist(),
            "predator_velocity": state.predator_velocity[0].tolist(), "timestep": 1,
        }  # fmt: skip
