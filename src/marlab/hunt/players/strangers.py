"""Noisy players and strangers with a lasting goal, and the one way from a character to whoever plays it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from marlab.hunt.game.rules import Game, Outcome
from marlab.hunt.game.views import View
from marlab.hunt.players.characters import Character, Keep, Noisy, Reciprocity
from marlab.hunt.players.policy import Chance, Memory, Policy, Team, choose, uniform
from marlab.hunt.players.reciprocators import Reciprocators
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.lab.errors import UserError


def policy_for(character: Character) -> Callable[[Game], Policy]:
    """Who plays a character in every seat of a game."""
    if isinstance(character, Reciprocity):
        return lambda game: Reciprocators(game, character)
    if isinstance(character, Noisy):
        return lambda game: NoisyPlayers(game, character)
    if isinstance(character, Keep):
        return lambda game: KeepingPlayers(game, character.share)
    return lambda game: RulePlayers(game, [character] * game.players)


def seat_characters(game: Game, characters: Sequence[Character]) -> Policy:
    """A character in every seat."""
    if len(characters) != game.players:
        raise UserError(f"There are {len(characters)} roles for {game.players} players; give one per player.")
    roles = [character for character in characters if isinstance(character, Role)]
    if len(roles) == len(characters):
        return RulePlayers(game, roles)
    different = list(dict.fromkeys(characters))
    return Team(game, [policy_for(one)(game) for one in different], [different.index(one) for one in characters])


class NoisyPlayers(Policy):
    """A noisy player in every seat. One uniform number decides both whether it errs and what it then does."""

    def __init__(self, game: Game, how: Noisy) -> None:
        self.game, self.share = game, how.share
        self._rules = RulePlayers(game, [how.rule] * game.players)
        self._random = RulePlayers(game, [Kind.RAND] * game.players)

    def begin(self, batch: int, generator: Chance) -> Memory:
        return self._rules.begin(batch, generator)

    def act(self, view: View, memory: Memory, generator: Chance) -> tuple[Tensor, Memory]:
        number = uniform(view.state.cell.shape, generator, self.game.device)
        errs = number < self.share
        rest = torch.where(errs, number / max(self.share, 1e-9), (number - self.share) / max(1 - self.share, 1e-9))
        rest = rest.clamp(0, 1 - 2**-24)  # a uniform number again, whichever side the first one fell on
        sensible = self._rules.options(view, memory)
        anything = self._random.options(view, self._anything(memory))
        options = torch.where(errs.unsqueeze(2), anything, sensible)
        return choose(options.unbind(2), rest), self._rules.remember(view, memory)

    def probabilities(self, view: View, memory: Memory) -> Tensor:
        sensible = self._rules.probabilities(view, memory)
        return (1 - self.share) * sensible + self.share * self._random.probabilities(view, self._anything(memory))

    def _anything(self, memory: Memory) -> Memory:
        return {**memory, "type": torch.full_like(memory["type"], int(Kind.RAND))}


class KeepingPlayers(Policy):
    """NS or NH in every seat, drawn when a team meets and kept from episode to episode.

    Memory: `type` and `waited` as rule-based players have them.
    """

    def __init__(self, game: Game, share: float) -> None:
        self._rules = RulePlayers(game, [Role(Kind.MIX, share)] * game.players)
        self.draws_once = True

    def begin(self, batch: int, generator: Chance) -> Memory:
        return self._rules.begin(batch, generator)

    def reset(self, memory: Memory, games: Tensor, generator: Chance) -> Memory:
        return memory

    def act(self, view: View, memory: Memory, generator: Chance) -> tuple[Tensor, Memory]:
        return self._rules.act(view, memory, generator)

    def observe(self, view: View, outcome: Outcome, memory: Memory) -> Memory:
        return memory

    def probabilities(self, view: View, memory: Memory) -> Tensor:
        return self._rules.probabilities(view, memory)
