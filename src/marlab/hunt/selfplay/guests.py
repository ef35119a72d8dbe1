"""Imagined guests: in a share of the training games some seats are played by the planners' own models of others.

In self-play everybody learns to share the stag, so values and plans know nothing of a table where nobody comes, and
an agent that meets hare catchers waits in vain. No outside player is needed to cure that: the models of others,
given a goal, are players themselves. A guest keeps one goal, stays for some episodes, and acts by what the player on
its right expects of somebody with that goal. Nothing is learned from its steps; the planners beside it learn from
their own.

Letters: B games, n players, K goals, A actions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from marlab.hunt.planner.mind import Goals
from marlab.hunt.selfplay.config import GuestConfig
from marlab.lab.ppo.choices import apply_mask, sample


class Guests:
    """Who sits at the tables of B games: planners, and guests with their goals."""

    def __init__(self, config: GuestConfig, goals: Goals, batch: int, players: int, generator: torch.Generator) -> None:
        self.config, self.generator = config, generator
        device = generator.device
        self.weights = goal_weights(goals).to(device)  # [2, K]
        self.seats = torch.zeros(batch, players, dtype=torch.bool, device=device)  # [B, n] who is a guest
        self.goal = torch.zeros(batch, players, dtype=torch.int64, device=device)  # [B, n] what it wants
        self.redraw(torch.ones(batch, dtype=torch.bool, device=device))

    @property
    def tables(self) -> Tensor:
        """[B] games with guests."""
        return self.seats.any(1)

    def redraw(self, games: Tensor) -> None:
        """New parties in the marked games [B]: none, or one to n - 1 guests, more often many than few."""
        batch, n = self.seats.shape
        device = self.seats.device
        uniform = torch.rand(batch, 2 * n + 4, generator=self.generator, device=device)
        size = (1 + (uniform[:, :2] * (n - 1)).long().amax(1)) * (uniform[:, 2] < self.config.share)
        seats = uniform[:, 4 : n + 4].argsort(1).argsort(1) < size.unsqueeze(1)
        own = uniform[:, n + 4 :] < 0.5
        prey = torch.where(uniform[:, 3:4] < self.config.alike, own[:, :1], own).long()  # [B, n] 0 stag, 1 hare
        goal = sample(self.weights[prey].log(), (self.weights.shape[1],), self.generator)
        marked = games.unsqueeze(1)
        self.seats, self.goal = torch.where(marked, seats, self.seats), torch.where(marked, goal, self.goal)

    def next_episode(self, over: Tensor) -> Tensor:
        """Parties of the games that are `over` [B] stay or leave; returns the games [B] with a new party."""
        leaves = torch.rand(len(over), generator=self.generator, device=over.device) >= self.config.stay
        new = over & leaves
        self.redraw(new)
        return new

    def policies(self, by_goal: Tensor, legal: Tensor) -> Tensor:
        """[B, n, A] how every player would act as a guest, from predictions [B, n, S', K, A] and legal [B, n, S', A].

        Player j is imagined by its neighbour j - 1, who sees it in slot 0.
        """
        logits = by_goal[:, :, 0].roll(1, 1)  # [B, n, K, A]
        index = self.goal.view(*self.goal.shape, 1, 1).expand(-1, -1, 1, logits.shape[-1])
        return apply_mask(logits.gather(2, index).squeeze(2), legal[:, :, 0].roll(1, 1)).softmax(-1)

    def state_dict(self) -> dict[str, Any]:
        return {"seats": self.seats, "goal": self.goal}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        device = self.seats.device
        self.seats, self.goal = saved["seats"].to(device), saved["goal"].to(device)


def goal_weights(goals: Goals) -> Tensor:
    """[2, K] chances of each goal for a guest who is after the stag, and for one who is after hares."""
    return goals.common.clamp_min(1e-6) / goals.common.clamp_min(1e-6).sum(1, keepdim=True)
