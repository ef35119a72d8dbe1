"""PettingZoo adapter: one game, agents `player_1` ... `player_n`, each leaving after the step of its capture.

Unlike the batched world it draws fresh obstacles at every reset. The time limit terminates an episode, because the
time is part of what players see.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlab.hunt.game import render
from marlab.hunt.game.build import game_with_blocks, make_game
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.rules import STAY, Game, Outcome, State
from marlab.hunt.game.views import View
from marlab.hunt.players.rollout import OUTCOMES, captures
from marlab.lab.errors import UserError

Observation = dict[str, np.ndarray]


class HuntEnv(ParallelEnv):
    """The stag hunt or the snowdrift game of a config."""

    metadata: ClassVar[dict[str, Any]] = {
        "name": "marlab_hunt_v0",
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
        "is_parallelizable": True,
    }

    def __init__(self, game: GameConfig | str = "msh_4x4", render_mode: str | None = None) -> None:
        """`game` is a config or the name of a preset."""
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UserError(f"render_mode is {render_mode!r}, expected None, 'ansi' or 'rgb_array'.")
        self.config = game_config(game) if isinstance(game, str) else game
        self.render_mode = render_mode
        self.possible_agents = [f"player_{i + 1}" for i in range(self.config.players)]
        self.agents: list[str] = []
        self._spaces = {agent: _observation_space(self.config) for agent in self.possible_agents}
        self._actions = {agent: spaces.Discrete(self.config.actions) for agent in self.possible_agents}
        shape = (self.config.height, self.config.width, self.config.channels)
        self.state_space = spaces.Box(0, 1, shape, np.int8)
        self._generator = torch.Generator()
        self._generator.seed()
        self._game: Game | None = None
        self._state: State | None = None
        self._outcome: Outcome | None = None
        self._tally: dict[str, torch.Tensor] = {}

    def observation_space(self, agent: str) -> spaces.Dict:
        return self._spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self._actions[agent]

    # --- playing --------------------------------------------------------------------------------------------------

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """A fresh game; the same seed gives the same games from here on. No options are known."""
        if seed is not None:
            self._generator.manual_seed(seed)
        self._game = make_game(self.config, self._generator, maps=1)
        self._state, self._outcome = self._game.reset(1, self._generator), None
        self.agents = list(self.possible_agents)
        zeros = torch.zeros(1, self.config.players, dtype=torch.int64)
        self._tally = {"return": zeros.float(), "steps": zeros, "outcome": zeros, "hunters": zeros}
        return self._observations(self.agents), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One action for every agent that still plays; an illegal one counts as stay."""
        game, state = self._playing()
        if not self.agents:
            return {}, {}, {}, {}, {}
        acted = list(self.agents)
        joint = [int(actions[agent]) if agent in acted else STAY for agent in self.possible_agents]
        alive = state.alive
        self._state, out = game.step(state, torch.tensor([joint]))
        self._outcome = out
        self._tally["return"] = self._tally["return"] + out.reward
        self._tally["steps"] = self._tally["steps"] + alive
        self._tally["outcome"] = captures(game, out, self._tally["outcome"])
        self._tally["hunters"] = torch.where(out.hunters > 0, out.hunters, self._tally["hunters"])
        reward, done = out.reward[0].tolist(), out.done[0].tolist()
        seat = {agent: i for i, agent in enumerate(self.possible_agents)}
        self.agents = [agent for agent in acted if not done[seat[agent]]]
        infos = {agent: {"episode": self._summary(seat[agent])} if done[seat[agent]] else {} for agent in acted}
        return (
            self._observations(acted),
            {agent: reward[seat[agent]] for agent in acted},
            {agent: done[seat[agent]] for agent in acted},
            dict.fromkeys(acted, False),
            infos,
        )

    def _observations(self, agents: list[str]) -> dict[str, Observation]:
        view = View(*self._playing())
        grid, mask = view.grid[0].numpy().astype(np.int8), view.mask[0].numpy().astype(np.int8)
        actions, alive = view.actions[0].numpy().astype(np.int8), view.alive[0].numpy().astype(np.int8)
        time = np.array([int(view.state.t[0])], dtype=np.int32)
        return {
            agent: {"observation": grid[i], "action_mask": mask[i], "actions": actions[i], "t": time, "alive": alive[i]}
            for i, agent in enumerate(self.possible_agents)
            if agent in agents
        }

    def _summary(self, seat: int) -> dict[str, Any]:
        _, state = self._playing()
        first = int(state.first_hunt[0])
        return {
            "return": float(self._tally["return"][0, seat]),
            "steps": int(self._tally["steps"][0, seat]),
            "outcome": OUTCOMES[int(self._tally["outcome"][0, seat])],
            "sharers": int(self._tally["hunters"][0, seat]),
            "first_hunt_time": None if first < 0 else first,
        }

    def _playing(self) -> tuple[Game, State]:
        if self._game is None or self._state is None:
            raise RuntimeError("call reset() first")
        return self._game, self._state

    # --- state and pictures ---------------------------------------------------------------------------------------

    def state(self) -> np.ndarray:
        """[H, W, channels] int8: the planes with the players in seat order."""
        return View(*self._playing()).board[0].numpy().astype(np.int8)

    def get_state(self) -> dict[str, Any]:
        """Everything, generator included, in plain arrays: `set_state` continues from it bit for bit."""
        game, state = self._playing()
        return {
            "blocks": game.maps.blocks.numpy().copy(),
            "state": {name: value.numpy().copy() for name, value in state._asdict().items()},
            "tally": {name: value.numpy().copy() for name, value in self._tally.items()},
            "agents": list(self.agents),
            "generator": self._generator.get_state().numpy().copy(),
        }

    def set_state(self, saved: dict[str, Any]) -> None:
        """Continue where `get_state` was called, perhaps in another environment of the same config."""
        self._game = game_with_blocks(self.config, torch.from_numpy(saved["blocks"].copy()))
        self._state = State(**{name: torch.from_numpy(value.copy()) for name, value in saved["state"].items()})
        self._tally = {name: torch.from_numpy(value.copy()) for name, value in saved["tally"].items()}
        self._outcome, self.agents = None, list(saved["agents"])
        self._generator.set_state(torch.from_numpy(saved["generator"].copy()))

    def render(self) -> np.ndarray | str | None:
        if self.render_mode is None:
            return None
        shown = render.scene(*self._playing(), outcome=self._outcome)
        return render.text(shown) if self.render_mode == "ansi" else render.image(shown)

    def close(self) -> None:
        """Nothing to release."""


def parallel_env(game: GameConfig | str = "msh_4x4", render_mode: str | None = None) -> HuntEnv:
    """The environment under the name that PettingZoo's users look for."""
    return HuntEnv(game, render_mode)


def _observation_space(config: GameConfig) -> spaces.Dict:
    n = config.players
    return spaces.Dict(
        {
            "observation": spaces.Box(0, 1, (config.height, config.width, config.channels), np.int8),
            "action_mask": spaces.Box(0, 1, (config.actions,), np.int8),
            "actions": spaces.Box(0, 7, (n,), np.int8),
            "t": spaces.Box(0, config.final_time, (1,), np.int32),
            "alive": spaces.Box(0, 1, (n,), np.int8),
        }
    )
