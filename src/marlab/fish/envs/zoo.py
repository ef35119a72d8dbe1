"""PettingZoo adapter: every fish is an agent and leaves after the step in which it dies."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlab.fish.envs.arena import Arena, checked
from marlab.fish.envs.gym import METADATA, observation_space
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.lab.errors import UserError


class FishParallelEnv(ParallelEnv):
    """Agents `fish_0` ... `fish_{N-1}`; `state()` is everything a central critic could want."""

    metadata: ClassVar[dict[str, Any]] = {**METADATA, "name": "fish_escape_v0"}

    def __init__(self, render_mode: str | None = None, **settings: Any) -> None:
        """`settings` are fields of `SeaConfig`."""
        if render_mode not in (None, "rgb_array"):
            raise UserError(f"render_mode is {render_mode!r}; it must be None or rgb_array.")
        cfg = SeaConfig(**settings)
        self.arena = Arena(cfg)
        self.render_mode = render_mode
        self.possible_agents = [f"fish_{i}" for i in range(cfg.num_fish)]
        self.agents: list[str] = []
        self._index = {agent: i for i, agent in enumerate(self.possible_agents)}
        self._observation_spaces = {agent: observation_space(cfg) for agent in self.possible_agents}
        self._action_spaces = {agent: spaces.Discrete(sea.ACTION_COUNT) for agent in self.possible_agents}
        self.state_space = spaces.Box(-np.inf, np.inf, shape=(5 * cfg.num_fish + 5,), dtype=np.float32)
        self._rng = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Box:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        rows, info = self.arena.reset(self._rng)
        self.agents = list(self.possible_agents)
        return {agent: rows[self._index[agent]] for agent in self.agents}, {agent: dict(info) for agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One action for every agent that still lives."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise UserError(f"{missing[0]} lives and has no action; give one for each of {len(self.agents)} agents.")
        chosen = np.full(len(self.possible_agents), sea.HOLD)
        given = np.asarray([actions[agent] for agent in self.agents])
        chosen[[self._index[agent] for agent in self.agents]] = checked(given, len(self.agents))
        result = self.arena.step(chosen)
        played = [(agent, self._index[agent]) for agent in self.agents]
        self.agents = [agent for agent, i in played if not (result.died[i] or result.terminated or result.truncated)]
        return (
            {agent: result.observation[i] for agent, i in played},
            {agent: float(result.reward[i]) for agent, i in played},
            {agent: bool(result.died[i]) or result.terminated for agent, i in played},
            {agent: result.truncated and not bool(result.died[i]) for agent, i in played},
            {agent: dict(result.info) for agent, _ in played},
        )

    def state(self) -> np.ndarray:
        """[5 N + 5]: x, y, vx, vy, alive of every fish, then the predator's x, y, vx, vy and the step / 500."""
        state = self.arena.state
        if state is None:
            raise UserError("Call reset() before state().")
        fish = np.stack([np.asarray(value[0], dtype=np.float32) for value in (*state[:4], state.alive)], axis=1)
        rest = [float(value[0]) for value in state.predator] + [int(state.t) / sea.EPISODE_STEPS]
        return np.concatenate((fish.ravel(), np.array(rest, dtype=np.float32)))

    def render(self) -> np.ndarray | None:
        return self.arena.picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Nothing to release."""
