"""The one interface of everything that plays: rule-based players, networks, planners.

A policy plays all seats of all games at once: its actions are [B, n], and the axis *is* the player's identity.
It holds no episode of its own; what it remembers travels in a dictionary of tensors with leading dimension B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import add

import torch
from torch import Tensor

from marlab.hunt.game.rules import ABSENT, Game, Outcome
from marlab.hunt.game.views import View

Memory = dict[str, Tensor]
"""What a policy remembers: tensors [B, ...] by name."""
Chance = torch.Generator | Tensor
"""Where a rule-based player's choices come from: a generator, or the uniform numbers [B, n] themselves."""


class Policy(ABC):
    """Chooses actions for every seat. Only `act` must be given."""

    draws_at_start: bool = False  # whether `begin` and `reset` draw anything
    draws_once: bool = False  # whether `begin` does, for all episodes of a team

    def begin(self, batch: int, generator: torch.Generator) -> Memory:
        """Memory at the first step of `batch` new episodes."""
        return {}

    def reset(self, memory: Memory, games: Tensor, generator: torch.Generator) -> Memory:
        """A new episode starts in the games [B] (bool) that are marked: by default their memory is made new."""
        fresh = self.begin(games.shape[0], generator)
        return {k: torch.where(games.view(-1, *[1] * (old.dim() - 1)), fresh[k], old) for k, old in memory.items()}

    @abstractmethod
    def act(self, view: View, memory: Memory, generator: torch.Generator) -> tuple[Tensor, Memory]:
        """(actions [B, n], memory after them); what it gives for players who left does not matter."""

    def observe(self, view: View, outcome: Outcome, memory: Memory) -> Memory:
        """Learn what the step did that started in `view`; called for every step, the last of an episode included."""
        return memory

    def probabilities(self, view: View, memory: Memory) -> Tensor | None:
        """[B, n, A] the exact distribution `act` draws from (zeros for players who left), where it is known."""
        return None


class Team(Policy):
    """Different policies in different seats: seat s is played by `policies[seats[s]]`."""

    def __init__(self, game: Game, policies: Sequence[Policy], seats: Sequence[int]) -> None:
        if len(seats) != game.players or not all(0 <= s < len(policies) for s in seats):
            raise ValueError(
                f"{len(seats)} seats {list(seats)} do not fit {game.players} players and {len(policies)} policies"
            )
        self.policies = list(policies)
        self._seats = torch.tensor(seats, device=game.device)  # [n]

    def begin(self, batch: int, generator: torch.Generator) -> Memory:
        return self._join([p.begin(batch, generator) for p in self.policies])

    def reset(self, memory: Memory, games: Tensor, generator: torch.Generator) -> Memory:
        return self._join([p.reset(m, games, generator) for p, m in zip(self.policies, self._split(memory))])

    def act(self, view: View, memory: Memory, generator: torch.Generator) -> tuple[Tensor, Memory]:
        chosen, kept = zip(*(p.act(view, m, generator) for p, m in zip(self.policies, self._split(memory))))
        return self._by_seat(chosen), self._join(kept)

    def observe(self, view: View, outcome: Outcome, memory: Memory) -> Memory:
        return self._join([p.observe(view, outcome, m) for p, m in zip(self.policies, self._split(memory))])

    def probabilities(self, view: View, memory: Memory) -> Tensor | None:
        each = [p.probabilities(view, m) for p, m in zip(self.policies, self._split(memory))]
        known = [f for f in each if f is not None]
        return self._by_seat(known) if len(known) == len(each) else None

    def _by_seat(self, options: Sequence[Tensor]) -> Tensor:
        """[B, n, ...] from one [B, n, ...] per policy."""
        stacked = torch.stack(list(options))  # [policies, B, n, ...]
        seat = torch.arange(self._seats.shape[0], device=self._seats.device)
        return stacked[self._seats, :, seat].transpose(0, 1)

    def _join(self, memories: Sequence[Memory]) -> Memory:
        return {f"{i}/{name}": value for i, memory in enumerate(memories) for name, value in memory.items()}

    def _split(self, memory: Memory) -> list[Memory]:
        parts: list[Memory] = [{} for _ in self.policies]
        for key, value in memory.items():
            index, _, name = key.partition("/")
            parts[int(index)][name] = value
        return parts


def uniform(shape: Sequence[int], chance: Chance, device: torch.device) -> Tensor:
    """Uniform numbers: the given ones, or new ones from a generator."""
    return chance if isinstance(chance, Tensor) else torch.rand(*shape, generator=chance, device=device)


def choose(options: Sequence[Tensor], chance: Chance) -> Tensor:
    """[B, n] one of the actions whose mask in `options` (A masks [B, n]) is set, each equally likely; else ABSENT.

    One uniform number per player, and exact: no rounding can pick an action that is not offered.
    """
    marks = [option.to(torch.int16) for option in options]
    count = reduce(add, marks)
    numbers = uniform(count.shape, chance, count.device)
    rank = torch.minimum((numbers * count).to(torch.int16), count - 1)  # -1 where nothing is offered
    action, seen = torch.full_like(count, -1), torch.zeros_like(count)
    for mark in marks:  # the choice is the last action at which no more than `rank` options came before
        action += seen <= rank
        seen += mark
    return torch.where(count > 0, action.long(), ABSENT)
