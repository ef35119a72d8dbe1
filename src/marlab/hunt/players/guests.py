"""Background players in training: some seats of some games are played by others than the learners.

They come in parties that stay for some episodes, so that learners meet stag hunters and hare catchers, not only
themselves. Letters: B games, n players, A actions, K goals.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from marlab.hunt.game.rules import Game
from marlab.hunt.game.views import View
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import GuestConfig, Kind
from marlab.lab.ppo.choices import sample

SAME_GOAL = 0.5
"""Share of the parties whose guests are all after the same prey; in the others everybody draws its own."""


class BackgroundPlayers:
    """Who sits in B games: learners, and guests who want something."""

    def __init__(
        self, config: GuestConfig, batch: int, players: int, generator: torch.Generator, weights: Tensor | None = None
    ) -> None:
        """weights: [2, K] chances of each goal for a guest who is after the stag, and for one who is after hares; by
        default what it wants is the one (0) or the other (1)."""
        self.config, self.generator, self.weights = config, generator, weights
        self.seats = torch.zeros(batch, players, dtype=torch.bool, device=generator.device)  # [B, n] who is a guest
        self.wants = torch.zeros(batch, players, dtype=torch.int64, device=generator.device)  # [B, n] its goal
        self.redraw(torch.ones(batch, dtype=torch.bool, device=generator.device))

    @property
    def mixed_games(self) -> Tensor:
        """[B] games with guests."""
        return self.seats.any(1)

    def redraw(self, games: Tensor) -> None:
        """New parties in the marked games [B]: none, or one to n - 1 guests, more often many than few."""
        batch, n = self.seats.shape
        uniform = torch.rand(batch, 2 * n + 4, generator=self.generator, device=self.seats.device)
        size = (1 + (uniform[:, :2] * (n - 1)).long().amax(1)) * (uniform[:, 2] < self.config.share)
        seats = uniform[:, 4 : n + 4].argsort(1).argsort(1) < size.unsqueeze(1)
        own = uniform[:, n + 4 :] < 0.5
        wants = torch.where(uniform[:, 3:4] < SAME_GOAL, own[:, :1], own).long()
        if self.weights is not None:
            wants = sample(self.weights[wants].log(), (self.weights.shape[1],), self.generator)
        marked = games.unsqueeze(1)
        self.seats, self.wants = torch.where(marked, seats, self.seats), torch.where(marked, wants, self.wants)

    def next_episode(self, over: Tensor) -> Tensor:
        """Parties of the games that are `over` [B] stay or leave; returns the games [B] with a new party."""
        leaves = torch.rand(len(over), generator=self.generator, device=over.device) >= self.config.stay
        new = over & leaves
        self.redraw(new)
        return new

    def state_dict(self) -> dict[str, Any]:
        return {"seats": self.seats, "wants": self.wants}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        device = self.seats.device
        self.seats, self.wants = saved["seats"].to(device), saved["wants"].to(device)


class RuleGuests(BackgroundPlayers):
    """Guests with their rules, for learners that imagine none: so PPO, and planners without goals, meet at least whom
    other planners imagine."""

    def __init__(self, config: GuestConfig, game: Game, games: int, generator: torch.Generator) -> None:
        super().__init__(config, games, game.players, generator)
        self.rules = RulePlayers(game, [Kind.NS] * game.players)  # lends its rules; each guest has its own

    @property
    def types(self) -> Tensor:
        """[B, n] NS or NH."""
        return torch.where(self.wants.bool(), int(Kind.NH), int(Kind.NS))

    def act(self, view: View) -> Tensor:
        """[B, n] what every player would do as a guest."""
        return self.rules.act(view, self.rules.memory_of(self.types), self.generator)[0]

    def probabilities(self, view: View) -> Tensor:
        """[B, n, A] by which it would."""
        return self.rules.probabilities(view, self.rules.memory_of(self.types))
