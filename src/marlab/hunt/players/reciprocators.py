"""Players who remember how the last episodes went, for scenarios that test reciprocity.

GRIM(k) hunts the stag until it has been let down k times (an episode ended and it had no stag), and takes hares for
ever after. TFT hunts the stag in the first episode, and later whenever somebody else went for the stag in the last
one: stood on it, or captured it.
"""

from __future__ import annotations

import torch

from marlab.hunt.game.rules import HUNT_STAG, Game, Outcome
from marlab.hunt.game.views import View
from marlab.hunt.players.characters import Reciprocity
from marlab.hunt.players.policy import Chance, Memory, Policy
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind


class Reciprocators(Policy):
    """A reciprocator in every seat: NS or NH within an episode, chosen by what happened in those before.

    Memory: `type` and `waited` as rule-based players have them, `letdowns` [B, n] episodes without a stag, `got`
    [B, n] whether it captured a stag in this episode, `company` [B, n] whether another player went for the stag.
    """

    def __init__(self, game: Game, how: Reciprocity) -> None:
        self.game, self.how = game, how
        self._rules = RulePlayers(game, [Kind.NS] * game.players)

    def begin(self, batch: int, generator: Chance) -> Memory:
        memory = self._rules.begin(batch, generator)
        no = torch.zeros(memory["type"].shape, dtype=torch.bool, device=self.game.device)
        return {**memory, "letdowns": torch.zeros_like(memory["type"]), "got": no, "company": no.clone()}

    def reset(self, memory: Memory, games: torch.Tensor, generator: Chance) -> Memory:
        ended = games.unsqueeze(1)
        letdowns = memory["letdowns"] + (ended & ~memory["got"])
        hunts = letdowns < self.how.strikes if self.how.rule == "GRIM" else memory["company"]
        wants = torch.where(hunts, int(Kind.NS), int(Kind.NH))
        return {
            "type": torch.where(ended, wants, memory["type"]),
            "waited": memory["waited"].masked_fill(ended, 0),
            "letdowns": letdowns,
            "got": memory["got"] & ~ended,
            "company": memory["company"] & ~ended,
        }

    def act(self, view: View, memory: Memory, generator: Chance) -> tuple[torch.Tensor, Memory]:
        actions, _ = self._rules.act(view, memory, generator)
        return actions, memory

    def observe(self, view: View, outcome: Outcome, memory: Memory) -> Memory:
        got = (outcome.executed == HUNT_STAG) & (outcome.hunters > 0)
        there = (self._rules.on_stag(view) | got).long()
        others = there.sum(1, keepdim=True) - there > 0  # somebody else stands on a stag
        return {**memory, "got": memory["got"] | got, "company": memory["company"] | others}

    def probabilities(self, view: View, memory: Memory) -> torch.Tensor:
        return self._rules.probabilities(view, memory)
