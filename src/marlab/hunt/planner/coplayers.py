"""Whom a planner takes the others for: learned models given goals, random players, copies of itself, or known rules.

Letters: R imagined situations, S' = n - 1 others, A actions, P copies of a network, which own R / P rows each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from marlab.hunt.game.rules import Game, State
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import GOAL_KINDS
from marlab.hunt.others.moa import Moa
from marlab.hunt.planner.dynamics import Embedding, Seen
from marlab.hunt.planner.nets import PlayerNets
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind


class CoPlayers(Protocol):
    """Predicts what the others do in imagined situations."""

    def prepare(self, goals: Tensor, meant: Tensor) -> Tensor:
        """Anything about the drawn goals [R, S'], and what they mean for the others [R, S', V], that stays the same in
        a tree, worked out once."""
        ...

    def logits(self, embedding: Embedding, seen: Seen, prepared: Tensor) -> Tensor:
        """[R, S', A] before masking, from what the others see."""
        ...


class LearnedCoPlayers:
    """Models of others, given goals."""

    def __init__(self, moa: Moa) -> None:
        self.moa = moa

    def prepare(self, goals: Tensor, meant: Tensor) -> Tensor:
        return self.moa.wishes(meant.unflatten(0, (self.moa.copies, -1)))  # [P, R / P, S', X]

    def logits(self, embedding: Embedding, seen: Seen, prepared: Tensor) -> Tensor:
        rows, time = (x.unflatten(0, (self.moa.copies, -1)) for x in (seen.rows, seen.time))
        return self.moa.given(rows, time, prepared).flatten(0, 1)


class RandomCoPlayers:
    """Everybody draws from the legal actions."""

    def prepare(self, goals: Tensor, meant: Tensor) -> Tensor:
        return goals

    def logits(self, embedding: Embedding, seen: Seen, prepared: Tensor) -> Tensor:
        return torch.zeros(seen.legal.shape, device=seen.legal.device)


class SelfCoPlayers:
    """Everybody acts by the planner's own prior, from their own seats; there are no goals in this variant."""

    def __init__(self, nets: PlayerNets) -> None:
        self.nets = nets

    def prepare(self, goals: Tensor, meant: Tensor) -> Tensor:
        return goals

    def logits(self, embedding: Embedding, seen: Seen, prepared: Tensor) -> Tensor:
        lead, copies = seen.rows.shape[:2], self.nets.copies
        time = seen.time.unsqueeze(1).expand(lead)
        logits, _ = self.nets(*(x.flatten(0, 1).unflatten(0, (copies, -1)) for x in (seen.rows, time)), None)
        return logits.flatten(0, 1).unflatten(0, lead)


class RuleCoPlayers:
    """Oracle models: goal g means the rule `kinds[g]`. Only where situations are states of the game itself."""

    def __init__(self, game: Game, kinds: Sequence[Kind] = GOAL_KINDS) -> None:
        self._rules = RulePlayers(game, [Kind.RAND] * game.players)  # lends its rules; the roles do not matter
        self._kinds = torch.tensor([int(kind) for kind in kinds], device=game.device)

    def prepare(self, goals: Tensor, meant: Tensor) -> Tensor:
        types = self._kinds[goals]  # [R, S']
        me = torch.full_like(types[:, :1], int(Kind.RAND))
        return torch.cat([me, types], 1)

    def logits(self, embedding: Embedding, seen: Seen, prepared: Tensor) -> Tensor:
        view = View(self._rules.game, State(*embedding))
        options = self._rules.options(view, self._rules.memory_of(prepared))[:, 1:]  # [R, S', A]
        return torch.where(options, 0.0, -1e9)
