"""Worlds for the PPO benchmarks, each once batched for marlab and once as a Gymnasium environment."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.lab.ppo.ppo import View


class Result(NamedTuple):
    reward: Tensor
    terminated: Tensor
    truncated: Tensor


class CartPole:
    """The equations of Gymnasium's CartPole-v1, B carts at a time, reset one step late."""

    def __init__(self, rows: int, generator: torch.Generator) -> None:
        self.rows, self.generator = rows, generator
        self.state = self._fresh()
        self.t = torch.zeros(rows, 1, dtype=torch.int64)
        self.waiting = torch.zeros(rows, 1, dtype=torch.bool)
        self.episode = torch.zeros(rows, 1)
        self.finished: list[Tensor] = []

    def _fresh(self) -> Tensor:
        return torch.rand(self.rows, 1, 4, generator=self.generator) * 0.1 - 0.05

    @property
    def acting(self) -> Tensor:
        return ~self.waiting

    def observe(self) -> View:
        return View(self.state)

    def step(self, actions: Tensor) -> Result:
        x, v, angle, spin = self.state.unbind(-1)
        force = torch.where(actions == 1, 10.0, -10.0)
        sin, cos = angle.sin(), angle.cos()
        push = (force + 0.05 * spin.square() * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos.square() / 1.1))
        speed_up = push - 0.05 * turn * cos / 1.1
        moved = torch.stack([x + 0.02 * v, v + 0.02 * speed_up, angle + 0.02 * spin, spin + 0.02 * turn], -1)
        acting = self.acting
        self.t = torch.where(acting, self.t + 1, 0)
        fell = (moved[..., 0].abs() > 2.4) | (moved[..., 2].abs() > 12 * 2 * math.pi / 360)
        terminated = acting & fell
        truncated = acting & ~fell & (self.t >= 500)
        self.episode = torch.where(acting, self.episode + 1.0, 0.0)
        self.finished.append(self.episode[terminated | truncated])
        self.state = torch.where(acting[..., None], moved, self._fresh())
        self.waiting = terminated | truncated
        return Result(acting.float(), terminated, truncated)


class Shoal:
    """64 x 25 agents of one shared policy walk on a plane; each is paid for being near its own target.

    24 inputs, 5 moves, episodes of 200 steps, everyone acts all the time.
    """

    INPUTS, MOVES, LENGTH = 24, 5, 200

    def __init__(
        self, arenas: int, agents: int, generator: torch.Generator, device: torch.device | str = "cpu"
    ) -> None:
        self.shape, self.generator, self.device = (arenas, agents), generator, torch.device(device)
        self.steps = torch.tensor([[0.0, 0.0], [0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]], device=self.device)
        self.t = torch.zeros(arenas, dtype=torch.int64, device=self.device)
        self.waves = torch.linspace(0.5, 3.0, 10, device=self.device)
        self.place, self.target = self._draw(), self._draw()

    def _draw(self) -> Tensor:
        return torch.rand(*self.shape, 2, generator=self.generator, device=self.device) * 2.0 - 1.0

    @property
    def acting(self) -> Tensor:
        return (self.t < self.LENGTH)[:, None].expand(self.shape)

    def observe(self) -> View:
        away = self.target - self.place
        phase = away[..., :1] * self.waves  # [B, A, 10]
        return View(torch.cat([self.place, away, phase.sin(), (away[..., 1:] * self.waves).cos()], -1))

    def step(self, actions: Tensor) -> Result:
        running = self.t < self.LENGTH
        moved = (self.place + self.steps[actions]).clamp(-1.0, 1.0)
        self.t = torch.where(running, self.t + 1, 0)
        self.place = torch.where(running[:, None, None], moved, self._draw())
        self.target = torch.where(running[:, None, None], self.target, self._draw())
        reward = -(self.target - self.place).norm(dim=-1) * running[:, None]
        over = (running & (self.t >= self.LENGTH))[:, None].expand(self.shape)
        return Result(reward, torch.zeros_like(over), over)


class Doors:
    """A masked toy game: walk N doors; at each one a random half of the handles is locked, one open handle pays.

    The position of the paying handle is shown; a locked handle can never be chosen. 10 steps, best return 10.
    """

    HANDLES, LENGTH = 8, 10

    def __init__(self, rows: int, generator: torch.Generator) -> None:
        self.rows, self.generator = rows, generator
        self.t = torch.zeros(rows, 1, dtype=torch.int64)
        self.episode = torch.zeros(rows, 1)
        self.finished: list[Tensor] = []
        self._draw()

    def _draw(self) -> None:
        order = torch.rand(self.rows, 1, self.HANDLES, generator=self.generator).argsort(-1)
        self.mask = order < self.HANDLES // 2
        self.pays = (order == 0).float()

    @property
    def acting(self) -> Tensor:
        return self.t < self.LENGTH

    def observe(self) -> View:
        # What pays is hidden among noise of the same size, so that it takes some learning.
        signs = self.pays * 2.0 - 1.0
        return View(torch.cat([signs * 0.5, self.mask.float(), self.t[..., None] / self.LENGTH], -1), self.mask)

    def step(self, actions: Tensor) -> Result:
        acting = self.acting
        reward = self.pays.gather(-1, actions[..., None]).squeeze(-1) * acting
        self.t = torch.where(acting, self.t + 1, 0)
        self.episode = torch.where(acting, self.episode + reward, 0.0)
        over = acting & (self.t >= self.LENGTH)
        self.finished.append(self.episode[over])
        self._draw()
        return Result(reward, over, torch.zeros_like(over))


def gym_doors() -> Any:
    """The same game for sb3-contrib."""
    import gymnasium
    import numpy as np

    class DoorsEnv(gymnasium.Env):  # type: ignore[misc]
        observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2 * Doors.HANDLES + 1,), np.float32)
        action_space = gymnasium.spaces.Discrete(Doors.HANDLES)

        def _seen(self) -> np.ndarray:
            self.order = self.np_random.permutation(Doors.HANDLES)
            self.mask, self.pays = self.order < Doors.HANDLES // 2, (self.order == 0).astype(np.float32)
            parts = [(self.pays * 2 - 1) * 0.5, self.mask.astype(np.float32), [self.t / Doors.LENGTH]]
            return np.concatenate(parts).astype(np.float32)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
            super().reset(seed=seed)
            self.t = 0
            return self._seen(), {}

        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            reward = float(self.pays[action])
            self.t += 1
            return self._seen(), reward, self.t >= Doors.LENGTH, False, {}

        def action_masks(self) -> np.ndarray:
            return self.mask

    return DoorsEnv()


def gym_shoal_member() -> Any:
    """One agent of `Shoal` as a Gymnasium environment of its own, in plain NumPy."""
    import gymnasium
    import numpy as np

    moves = np.array([[0.0, 0.0], [0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]], np.float32)
    waves = np.linspace(0.5, 3.0, 10, dtype=np.float32)

    class Member(gymnasium.Env):  # type: ignore[misc]
        observation_space = gymnasium.spaces.Box(-4.0, 4.0, (Shoal.INPUTS,), np.float32)
        action_space = gymnasium.spaces.Discrete(Shoal.MOVES)

        def _seen(self) -> np.ndarray:
            away = self.target - self.place
            return np.concatenate([self.place, away, np.sin(away[0] * waves), np.cos(away[1] * waves)])

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
            super().reset(seed=seed)
            self.t = 0
            self.place = self.np_random.random(2, np.float32) * 2 - 1
            self.target = self.np_random.random(2, np.float32) * 2 - 1
            return self._seen(), {}

        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            self.place = np.clip(self.place + moves[action], -1.0, 1.0)
            self.t += 1
            away = self.target - self.place
            reward = -math.sqrt(float(away[0]) ** 2 + float(away[1]) ** 2)
            return self._seen(), reward, False, self.t >= Shoal.LENGTH, {}

    return Member()
