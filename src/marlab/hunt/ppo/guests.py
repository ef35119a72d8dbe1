"""Guests at the tables of learners that imagine none: stag hunters and hare catchers in some of the seats.

They are drawn as the imagined guests of planning agents are (`marlab.hunt.selfplay.play`), but played by the rules
themselves, so that PPO, and planners without goals, meet at least what others imagine. Letters: B games, n players, A
actions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from marlab.hunt.game.rules import Game
from marlab.hunt.game.views import View
from marlab.hunt.players.guests import SAME_GOAL, GuestConfig
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind


class RuleGuests:
    """Who sits at the tables of B games: learners, and guests with their rules."""

    def __init__(self, config: GuestConfig, game: Game, games: int, generator: torch.Generator) -> None:
        self.config, self.generator = config, generator
        self.rules = RulePlayers(game, [Kind.NS] * game.players)  # lends its rules; each guest has its own
        self.seats = torch.zeros(games, game.players, dtype=torch.bool, device=game.device)  # [B, n] who is a guest
        self.type = torch.zeros(games, game.players, dtype=torch.int64, device=game.device)  # [B, n] NS or NH
        self.redraw(torch.ones(games, dtype=torch.bool, device=game.device))

    @property
    def tables(self) -> Tensor:
        """[B] games with guests."""
        return self.seats.any(1)

    def redraw(self, games: Tensor) -> None:
        """New parties in the marked games [B]: none, or one to n - 1 guests, more often many than few."""
        batch, n = self.seats.shape
        uniform = torch.rand(batch, 2 * n + 4, generator=self.generator, device=self.seats.device)
        size = (1 + (uniform[:, :2] * (n - 1)).long().amax(1)) * (uniform[:, 2] < self.config.share)
        seats = uniform[:, 4 : n + 4].argsort(1).argsort(1) < size.unsqueeze(1)
        own = uniform[:, n + 4 :] < 0.5
        hare = torch.where(uniform[:, 3:4] < SAME_GOAL, own[:, :1], own)
        types = torch.where(hare, int(Kind.NH), int(Kind.NS))
        marked = games.unsqueeze(1)
        self.seats, self.type = torch.where(marked, seats, self.seats), torch.where(marked, types, self.type)

    def next_episode(self, over: Tensor) -> Tensor:
        """Parties of the games that are `over` [B] stay or leave; returns the games [B] with a new party."""
        leaves = torch.rand(len(over), generator=self.generator, device=over.device) >= self.config.stay
        new = over & leaves
        self.redraw(new)
        return new

    def act(self, view: View) -> Tensor:
        """[B, n] what every player would do as a guest."""
        return self.rules.act(view, self.rules.memory_of(self.type), self.generator)[0]

    def probabilities(self, view: View) -> Tensor:
        """[B, n, A] by which it would."""
        return self.rules.probabilities(view, self.rules.memory_of(self.type))

    def state_dict(self) -> dict[str, Any]:
        return {"seats": self.seats, "type": self.type}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        device = self.seats.device
        self.seats, self.type = saved["seats"].to(device), saved["type"].to(device)
