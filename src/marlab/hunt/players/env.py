"""PettingZoo adapter: one game, agents `player_1` ... `player_n`, each leaving after the step of its capture.

It plays by the scalar rules of `game.scalar`, because a single game is too small for tensors. Unlike the batched world
it draws fresh obstacles at every reset. The time limit terminates an episode, because the time is part of what players
see.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from copy import deepcopy
from operator import index
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.game.scalar import STAY, PlainState, Rules, Step
from marlab.hunt.players.glance import PlainObserver
from marlab.hunt.players.rollout import OUTCOMES
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
        self.rules, self._glance = Rules(self.config), PlainObserver(self.config)
        self.possible_agents = [f"player_{i + 1}" for i in range(self.config.players)]
        self.agents: list[str] = []
        self._seat = {agent: i for i, agent in enumerate(self.possible_agents)}
        self._spaces = {agent: self._glance.space() for agent in self.possible_agents}
        self._actions = {agent: spaces.Discrete(self.config.actions) for agent in self.possible_agents}
        shape = (self.config.height, self.config.width, self.config.channels)
        self.state_space = spaces.Box(0, 1, shape, np.int8)
        self._rng = random.Random()
        self._situation: PlainState | None = None
        self._step: Step | None = None
        self._paid: list[float] = []
        self._steps: list[int] = []
        self._outcome: list[int] = []
        self._hunters: list[int] = []

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
            self._rng.seed(seed)
        self._situation, self._step = self.rules.start(self._rng), None
        self.agents = list(self.possible_agents)
        players = self.config.players
        self._paid, self._steps = [0.0] * players, [0] * players
        self._outcome, self._hunters = [0] * players, [0] * players
        return self._glance.all(self.rules, self._situation, self.agents, self._seat), {a: {} for a in self.agents}

    def step(
        self, actions: Mapping[str, int]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One action for every agent that still plays; an illegal one counts as stay."""
        before = self._playing()
        acted = self.agents
        if not acted:
            return {}, {}, {}, {}, {}
        joint = [STAY] * self.config.players
        for agent in acted:
            joint[self._seat[agent]] = self._action(agent, actions)
        self._step = out = self.rules.step(before, joint)
        self._situation = out.after
        infos: dict[str, dict[str, Any]] = {}
        rewards, done, staying = {}, {}, []
        for agent in acted:
            seat = self._seat[agent]
            self._paid[seat] += out.reward[seat]
            self._steps[seat] += 1
            if out.hunters[seat]:
                self._hunters[seat] = out.hunters[seat]
                if not self.rules.snow:  # HUNT_STAG 5 -> stag 1, HUNT_HARE 6 -> hare 2
                    self._outcome[seat] = out.after.last_action[seat] - 4
            rewards[agent], done[agent] = out.reward[seat], out.done[seat]
            infos[agent] = {"episode": self._summary(seat)} if out.done[seat] else {}
            if not out.done[seat]:
                staying.append(agent)
        self.agents = staying
        observations = self._glance.all(self.rules, out.after, acted, self._seat)
        return observations, rewards, done, dict.fromkeys(acted, False), infos

    def _action(self, agent: str, actions: Mapping[str, int]) -> int:
        """The action of an agent that plays; what is missing or no action is refused in a sentence."""
        try:
            action = index(actions[agent])
        except (KeyError, TypeError):
            given = f"is {actions[agent]!r}" if agent in actions else "is missing"
            raise UserError(
                f"The action of {agent} {given}, expected {self._expected()} for every agent that plays "
                f"({', '.join(self.agents)})."
            ) from None
        if not 0 <= action < self.config.actions:
            raise UserError(f"The action of {agent} is {action}, expected {self._expected()}.")
        return action

    def _expected(self) -> str:
        names = ACTION_NAMES[: self.config.actions]
        return f"a whole number from 0 ({names[0]}) to {len(names) - 1} ({names[-1]})"

    def _summary(self, seat: int) -> dict[str, Any]:
        first = self._playing().first_hunt
        return {
            "return": self._paid[seat],
            "steps": self._steps[seat],
            "outcome": OUTCOMES[self._outcome[seat]],
            "sharers": self._hunters[seat],
            "first_hunt_time": None if first < 0 else first,
        }

    def _playing(self) -> PlainState:
        if self._situation is None:
            raise RuntimeError("call reset() first")
        return self._situation

    # --- state and pictures ---------------------------------------------------------------------------------------

    def state(self) -> np.ndarray:
        """[H, W, channels] int8: the planes with the players in seat order."""
        return self._glance.planes(self.rules, self._playing())

    def get_state(self) -> dict[str, Any]:
        """Everything, generator included, in plain values: `set_state` continues from it bit for bit."""
        situation = self._playing()
        kept = {name: deepcopy(getattr(situation, name)) for name in PlainState.__slots__}
        tally = [list(values) for values in (self._paid, self._steps, self._outcome, self._hunters)]
        return {"situation": kept, "tally": tally, "agents": list(self.agents), "generator": self._rng.getstate()}

    def set_state(self, saved: dict[str, Any]) -> None:
        """Continue where `get_state` was called, perhaps in another environment of the same config."""
        self._situation, self._step = PlainState(**deepcopy(saved["situation"])), None
        self._paid, self._steps, self._outcome, self._hunters = (list(values) for values in saved["tally"])
        self.agents = list(saved["agents"])
        self._rng.setstate(saved["generator"])

    def render(self) -> np.ndarray | str | None:
        if self.render_mode is None:
            return None
        from marlab.hunt.game import render
        from marlab.hunt.game.build import batched, batched_outcome

        game, state = batched(self.config, self._playing())
        outcome = None if self._step is None else batched_outcome(self._step)
        shown = render.scene(game, state, outcome=outcome)
        return render.text(shown) if self.render_mode == "ansi" else render.image(shown)

    def close(self) -> None:
        """Nothing to release."""


def parallel_env(game: GameConfig | str = "msh_4x4", render_mode: str | None = None) -> HuntEnv:
    """The environment under the name that PettingZoo's users look for."""
    return HuntEnv(game, render_mode)
