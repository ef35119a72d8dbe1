"""A series of episodes in which one seat is a human's.

The others decide before the human's move is known, as everybody does in this game. What they believe of the human and
expect of it can be shown before the move; what they are about to do cannot.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from marlab.hunt.evaluate.agents import Agent, find_agent
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import ACTION_NAMES, STAY
from marlab.hunt.game.views import View
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.watch.record import Episode, Moment, SeatedPlayers
from marlab.lab.errors import UserError
from marlab.lab.runs.rng import Rngs

SCHEMA = 1
HUMAN = "you"
TEAMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "planners": ("msh_4x4", ("hop_4x4", "hop_4x4", "hop_4x4")),
    "mixed": ("msh_4x4", ("hop_4x4", "NS", "NH")),
    "rules": ("msh_4x4", ("NS", "NS", "NH")),
    "large": ("msh_8x8_b5", ("hop_8x8_b5", "hop_8x8_b5", "hop_8x8_b5")),
}
"""Whom a human can meet: the game, and the agents around the table."""


class HumanPolicy(Policy):
    """Plays what it is told; until then it stays."""

    def act(self, view: View, memory: Memory, generator: torch.Generator) -> tuple[Tensor, Memory]:
        return torch.full_like(view.state.cell, STAY), memory


class HumanGame:
    """One table. Episodes follow each other with the same players, who remember what they have seen."""

    def __init__(self, team: str, seat: int, seed: int) -> None:
        """`seat`: the human's, from 0."""
        if team not in TEAMS:
            raise UserError(f"There is no team '{team}', expected one of {', '.join(TEAMS)}.")
        self.name, others = TEAMS[team]
        rngs = Rngs(seed, torch.device("cpu"))
        self.game = make_game(game_config(self.name), rngs.torch("maps", "cpu"), device=rngs.device)
        if not 0 <= seat < self.game.players:
            raise UserError(f"seat is {seat + 1}, expected a number from 1 to {self.game.players}.")
        self.team, self.seat, self.seed = team, seat, seed
        human = Agent(HUMAN, "human", lambda game, seed: HumanPolicy())
        around = [human, *(find_agent(name) for name in others)]
        agents = [around[(place - seat) % len(around)] for place in range(len(around))]
        self.players = [agent.name for agent in agents]
        self.finished: list[Episode] = []
        self._starts = rngs.torch("starts")
        self._seated = SeatedPlayers(self.game, agents, rngs.torch("players"))
        self._begin()

    # --- an episode -------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._seated.begin(self.game.reset(1, self._starts))
        self._seated.think()

    @property
    def moments(self) -> list[Moment]:
        return self._seated.moments

    @property
    def over(self) -> bool:
        return self._seated.over

    @property
    def episode(self) -> int:
        """Its number, from 0."""
        return len(self.finished) - (1 if self.over else 0)

    def legal(self) -> list[str]:
        """What the human may do now."""
        if self.over:
            return []
        mask = self._seated.view.mask[0, self.seat].tolist()
        return [name for name, allowed in zip(ACTION_NAMES, mask) if allowed]

    def move(self, action: str) -> None:
        """The human moves, and with it everybody; who has left watches the others to the end."""
        if action not in self.legal():
            raise UserError(f"'{action[:40]}' is no move here, expected one of {', '.join(self.legal()) or 'none'}.")
        self._seated.actions[0, self.seat] = ACTION_NAMES.index(action)
        self._step()
        while not self.over and not bool(self._seated.view.state.alive[0, self.seat]):
            self._step()

    def _step(self) -> None:
        self._seated.step(hidden=self.seat)
        if self.over:
            self.finished.append(self._told())
        else:
            self._seated.think()

    def again(self) -> None:
        """The next episode of the same players."""
        if not self.over:
            raise UserError("The episode is not over yet.")
        self._begin()

    # --- what is told -----------------------------------------------------------------------------------------------

    def _told(self) -> Episode:
        return Episode(self.name, self.players, len(self.finished), self._seated.told())

    def shown(self) -> dict[str, Any]:
        """What the human may see: the board, its moves, and what the others believe."""
        thoughts = [] if self.over else self._seated.thoughts
        return {
            "team": self.team, "seat": self.seat, "players": self.players, "step": len(self.moments),
            "episode": self.episode, "over": self.over, "earned": self._seated.earned.tolist(), "legal": self.legal(),
            "scene": self._seated.scene._asdict(),
            "opinions": [
                [vars(o) for o in thought.opinions] if thought is not None and seat != self.seat else []
                for seat, thought in enumerate(thoughts)
            ],
            "sources": [thought.source if thought is not None else None for thought in thoughts],
        }  # fmt: skip

    def record(self) -> dict[str, Any]:
        """The whole series as plain values."""
        episodes = [episode.to_dict() for episode in self.finished]
        if not self.over:
            episodes.append(self._told().to_dict())
        return {
            "schema": SCHEMA, "kind": "hunt/human", "game": self.name, "team": self.team, "players": self.players,
            "human_seat": self.seat, "seed": self.seed, "episodes": episodes,
        }  # fmt: skip
