"""One arena in C: what the tensors of `fish/sea` compute for thousands, for the one that a single environment plays.

A step of tensors costs about a millisecond however small the batch; here it costs microseconds. Only the step is here:
starts come from `fish/sea`, and so do the moves of predators that hunt.
"""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import numpy as np
import torch

from marlab.fish.sea import constants as sea
from marlab.fish.sea import rewards
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.lab.native import library_of

SOURCE = Path(__file__).with_name("arena.c")
MOST_NEAREST = 64
"""Of `neighbor_average_count`, in C."""
_CONSTANTS = {
    "ARENA_RADIUS": sea.ARENA_RADIUS, "VISION_RADIUS": sea.VISION_RADIUS,
    "DT": sea.DT, "REST_SPEED": sea.REST_SPEED, "KILL_DISTANCE": sea.KILL_DISTANCE,
    "FISH_MAX_SPEED": sea.FISH_MAX_SPEED, "FISH_GAIN": sea.FISH_ACCELERATION * sea.DT, "FISH_BRAKE": sea.FISH_BRAKE,
    "FISH_COS": math.cos(sea.FISH_TURN), "FISH_SIN": math.sin(sea.FISH_TURN),
    "FISH_RESTITUTION": sea.FISH_RESTITUTION, "PREDATOR_RESTITUTION": sea.PREDATOR_RESTITUTION,
    "SCALE": rewards.SCALE, "LIFE": rewards.LIFE, "DEATH": rewards.DEATH, "VISION_TOP": rewards.VISION_TOP,
    "WALL_MARGIN": rewards.WALL_MARGIN, "WALL_SLOPE": rewards.WALL_SLOPE,
}  # fmt: skip
_WHOLE = ("fish", "predators", "social", "nearest", "t", "alive_count", "first_death")
_REAL = ("neighbour_radius", "vision", "pull", "unseen", "density_coef", "density_target", "divergence_coef")
_ARRAYS = (
    "x", "y", "vx", "vy", "predator", "alive", "died", "death_step", "actions", "observation", "reward", "scratch",
)  # fmt: skip


class _Struct(ctypes.Structure):
    """The C struct `Sea`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in _WHOLE),
        *((name, ctypes.c_float) for name in _REAL),
        *((name, ctypes.c_void_p) for name in _ARRAYS),
    )


def native_sea(cfg: SeaConfig) -> NativeSea | None:
    """An arena in C for these settings; none without a compiler, or where C does not know what fish see."""
    plain = cfg.observation_size == 11 + 7 * cfg.include_neighbor_features
    library = library_of(SOURCE, *(f"{name}=({float(value)!r}f)" for name, value in _CONSTANTS.items()))
    if not plain or cfg.neighbor_average_count > MOST_NEAREST or not isinstance(library, ctypes.CDLL):
        return None
    return NativeSea(library, cfg)


class NativeSea:
    """The state of one arena as arrays that C writes to; `state` shows it as tensors."""

    def __init__(self, library: ctypes.CDLL, cfg: SeaConfig) -> None:
        fish, width = cfg.num_fish, cfg.observation_size
        self.x, self.y, self.vx, self.vy, self.reward = (np.zeros(fish, np.float32) for _ in range(5))
        self.predator = np.zeros((cfg.predator_count, 4), np.float32)
        self.alive, self.died = np.zeros(fish, bool), np.zeros(fish, bool)
        self.death_step, self.actions = np.zeros(fish, np.int32), np.zeros(fish, np.int64)
        self.observation = np.zeros((fish, width), np.float32)
        self.scratch = np.zeros((4, fish), np.float32)
        self.memory = torch.zeros(1, 0)
        self._struct = _Struct(fish=fish, predators=cfg.predator_count)
        for name in _ARRAYS:
            setattr(self._struct, name, getattr(self, name).ctypes.data)
        self.set(cfg)
        address = ctypes.byref(self._struct)
        calls = (library.move, library.fall, library.judge, library.look)
        for function in calls:
            function.argtypes, function.restype = (ctypes.c_void_p,), None
        self._address, (self._move, self._fall, self._judge, self._look) = address, calls

    def set(self, cfg: SeaConfig) -> None:
        """The dials of the settings, from the next step on."""
        struct = self._struct
        struct.social = int(cfg.include_neighbor_features) | 2  # rewards always look at neighbours
        struct.nearest, struct.neighbour_radius = cfg.neighbor_average_count, cfg.neighbor_radius
        struct.vision, struct.unseen = cfg.vision_radius, rewards.OUTSIDE_VISION[cfg.vision_reward or "continuous"]
        struct.pull = sea.PREDATOR_PULL * cfg.predator_speed_factor**2
        struct.density_coef, struct.density_target = cfg.density_penalty_coef, cfg.density_target
        struct.divergence_coef = cfg.divergence_reward_coef
        if not (cfg.include_neighbor_features or cfg.density_penalty_coef or cfg.divergence_reward_coef):
            struct.social = 0

    def begin(self, state: SeaState) -> None:
        """Take over a state of one arena."""
        for array, plane in zip((self.x, self.y, self.vx, self.vy, self.alive, self.death_step), _fish(state)):
            array[:] = plane[0].numpy()
        self.take_predators(state)
        self._struct.t, self._struct.first_death = int(state.t), -1
        self._struct.alive_count = int(self.alive.sum())
        self._look(self._address)

    def take_predators(self, state: SeaState) -> None:
        """Place and velocity of all predators, and what they remember."""
        self.predator[:] = torch.stack(state.predators, -1)[0].numpy()
        self.memory = state.memory

    def move_fish(self) -> None:
        self._move(self._address)

    def let_fall(self) -> None:
        """The ballistic predator's move."""
        self._fall(self._address)

    def judge(self) -> None:
        """Who is eaten, the rewards, and what is seen then."""
        self._judge(self._address)

    @property
    def t(self) -> int:
        return int(self._struct.t)

    @property
    def alive_count(self) -> int:
        return int(self._struct.alive_count)

    @property
    def first_death(self) -> int:
        """Step of the first death; -1 without one."""
        return int(self._struct.first_death)

    def state(self) -> SeaState:
        """A copy of everything, as a batch of one."""
        x, y, vx, vy = (torch.from_numpy(plane.copy())[None] for plane in (self.x, self.y, self.vx, self.vy))
        alive, predators = torch.from_numpy(self.alive.copy())[None], torch.from_numpy(self.predator.copy())
        first, pack = predators[0, :, None], predators[1:].T.reshape(1, -1)
        return SeaState(
            x, y, vx, vy, torch.ones_like(alive), alive, torch.from_numpy(self.death_step.copy())[None], first[0],
            first[1], first[2], first[3], torch.tensor([self.t], dtype=torch.int32), pack, self.memory,
        )  # fmt: skip


def _fish(state: SeaState) -> tuple[torch.Tensor, ...]:
    return state.x, state.y, state.vx, state.vy, state.alive, state.death_step
