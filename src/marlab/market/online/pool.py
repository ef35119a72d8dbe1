"""Who the learner plays against: rule, built-in agents, clones of experts, its own past.

Whoever earns more than the learner beside it is drawn more often. Past selves take turns in a few places.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from marlab.lab.errors import UserError
from marlab.market.online.player import Player, SharedRule
from marlab.market.online.settings import BUILTINS
from marlab.market.vector.builtin import BUILTIN
from marlab.market.vector.clones import ClonePack, load
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Policy

Tensor = Any
RANDOM = "RandomStdAgent"
SPREAD = 0.05
"""A difference of scores that doubles how often an opponent is drawn."""
MEMORY = 0.8
"""How much of what was known about an opponent is kept from generation to generation."""
PAST = "past self"


class Pool:
    """Names of opponents and how often each is drawn. Number 0 is Random (the market's own), 1 the learner."""

    def __init__(self, opponents: Sequence[str], clones: Path | None, past_selves: int) -> None:
        self._pack: ClonePack | None = None
        if clones is not None:
            self._pack = load(clones)
        known = list(self._pack.names) if self._pack is not None else []
        names = list(opponents) or (["rule", *known] if known else list(BUILTINS))
        for name in names:
            if name not in BUILTINS and name not in known:
                raise UserError(f"There is no opponent {name}; there are {', '.join([*BUILTINS, *known])}.")
        self.names = [RANDOM, "learner", *(n for n in dict.fromkeys(names) if n != RANDOM)]
        self.names += [f"{PAST} {i + 1}" for i in range(past_selves)]
        self._drawn = torch.tensor([RANDOM in names, False, *([True] * (len(self.names) - 2))])
        self.ahead = torch.zeros(len(self.names), dtype=torch.float64)  # how much more each earns than the learner
        self.past: list[dict[str, Tensor]] = []  # weights of frozen selves, the newest last
        self._past_selves = past_selves

    def change_clones(self, clones: Path) -> None:
        """Play other clones of the same experts from now on."""
        pack = load(clones)
        missing = set(self.cloned) - set(pack.names)
        if missing:
            raise UserError(f"{clones} has no clone of {sorted(missing)[0]}.")
        self._pack = pack

    @property
    def cloned(self) -> tuple[str, ...]:
        """Opponents that are clones."""
        names = () if self._pack is None else self._pack.names
        return tuple(name for name in names if name in self.names)

    @property
    def kinds(self) -> int:
        """How many numbers there are."""
        return len(self.names)

    @property
    def lasting(self) -> list[int]:
        """Numbers of the opponents that are there from the beginning."""
        return [i for i, name in enumerate(self.names) if self._drawn[i] and not name.startswith(PAST)]

    def chances(self) -> Tensor:
        """[kinds] how often each is drawn."""
        weight = torch.exp2((self.ahead / SPREAD).clamp(-1, 2)) * self._drawn
        for i in range(self._past_selves):
            if len(self.past) <= i:
                weight[len(self.names) - self._past_selves + i] = 0
        if not weight.sum() > 0:
            raise UserError("There is nobody to play against.")
        return weight / weight.sum()

    def learn(self, ahead: Tensor, seen: Tensor) -> None:
        """Take over by how much each kind was ahead of the learner [kinds], where it was `seen`."""
        mixed = MEMORY * self.ahead + (1 - MEMORY) * ahead.cpu().double()
        self.ahead = torch.where(seen.cpu(), mixed, self.ahead)

    def remember(self, net: nn.Module) -> None:
        """Freeze the learner as it is."""
        if self._past_selves:
            weights = {name: value.detach().cpu().clone() for name, value in net.state_dict().items()}
            self.past = [*self.past, weights][-self._past_selves :]

    def remembering(self, kind: Tensor) -> Tensor:
        """[B, L, A], bool: seats that remember partners as the rule does."""
        mine = kind == 1
        for number, name in enumerate(self.names):
            if name == "rule" or name.startswith(PAST):
                mine = mine | (kind == number)
        return mine

    def policies(
        self,
        market: Market,
        rule: RuleW,
        kind: Tensor,
        net: Any,
        generator: torch.Generator,
        plays: type[Player] = Player,
    ) -> tuple[dict[int, Policy], Tensor]:
        """Policies for every number but 0 and the learner's, and the numbers [B, L, A] that ask them.

        `rule` listens, the others share its memory. All clones are one policy, which is quicker.
        """
        found: dict[int, Policy] = {}
        asked, expert, clones = kind.clone(), torch.zeros_like(kind), 0
        for number, name in enumerate(self.names):
            if number < 2 or not bool((kind == number).any()):
                continue
            if name == "rule":
                found[number] = SharedRule(rule)
            elif name in BUILTIN:
                found[number] = BUILTIN[name](generator)
            elif name.startswith(PAST):
                weights = self.past[-1 - (number - (len(self.names) - self._past_selves))]
                frozen = copy.deepcopy(net)
                frozen.load_state_dict(weights)
                found[number] = plays(market, rule, kind == number, frozen, generator)
            else:
                assert self._pack is not None
                clones = clones or number
                expert[kind == number] = self._pack.number(name)
                asked[kind == number] = clones
        if clones and self._pack is not None:
            found[clones] = self._pack.policies(market, expert, generator)
        return found, asked

    def state_dict(self) -> dict[str, Any]:
        """What changes."""
        return {"ahead": self.ahead, "past": self.past}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.ahead, self.past = state["ahead"], list(state["past"])
