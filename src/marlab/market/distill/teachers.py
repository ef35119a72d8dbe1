"""Teachers: what they would choose in the situations of a student.

The rule and networks around it say it for any inputs. Networks of four layers and learnt habits answer in the market
itself; their answers are put into the words of the heads as well as these can say them: the nearest lot and price, and
a day after today as the next one with room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.lab.ppo.choices import apply_mask
from marlab.market.agent.batched import Batched
from marlab.market.agent.layers import find_learned, load_habits, load_parts
from marlab.market.agent.settings import AgentSettings
from marlab.market.networks import around as files
from marlab.market.online.ground_vector import Ground
from marlab.market.online.player import Player
from marlab.market.rules import around
from marlab.market.rules.habits import Learnt
from marlab.market.rules.plan import NEXT, TODAY
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, OFFER
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import CONSUMERS, Policy, Rows

Tensor = Any
RULE, HRL, HABITS = "rule", "hrl", "habits"
_STARTS = np.cumsum((0, *around.HEADS[:-1])).tolist()


@dataclass(frozen=True)
class Teacher:
    """Somebody to learn from: a network around the rule (the rule has nothing learnt), four layers, or habits."""

    name: str
    net: files.AroundNet | None = None
    layers: AgentSettings | None = None
    habits: Learnt | None = None

    @property
    def answers(self) -> bool:
        """Whether it has to be asked in the market itself."""
        return self.layers is not None or self.habits is not None

    def policy(self, market: Market, mine: Tensor) -> Policy:
        """Who answers there, in the seats `mine` [B, L, A]."""
        if self.layers is not None:
            return Batched(market, self.layers, chosen=mine)
        return RuleW(market, chosen=mine, quick=True, habits=self.habits)

    def shares(self, x: Tensor, mask: Tensor) -> Tensor:
        """[M, C] probabilities of the entries of every head; the rule is certain."""
        if self.net is None:
            logits = torch.tensor(around.prior(60.0), device=x.device).expand(len(x), -1)
        else:
            logits = _logits(self.net, x)
        return by_head(apply_mask(logits, mask))


def by_head(logits: Tensor) -> Tensor:
    """Softmax of every head [..., C]."""
    return torch.cat([part.softmax(-1) for part in logits.split(around.HEADS, -1)], -1)


def _logits(net: files.AroundNet, x: Tensor) -> Tensor:
    *hidden, last = [tuple(torch.as_tensor(np.asarray(part)).to(x) for part in layer) for layer in net.layers]
    for weight, bias in hidden:
        x = torch.relu(x @ weight.T + bias)
    return x @ last[0].T + last[1] + torch.tensor(around.prior(net.bonus), device=x.device)


def find(source: str) -> Teacher:
    """The teacher behind a word."""
    if source == RULE:
        return Teacher(source)
    if source == HRL or source.startswith(f"{HRL}:"):
        place = source.partition(":")[2]
        settings = AgentSettings(mode="neural", weights=place or None)
        load_parts(settings)  # refuses weights that are not there
        return Teacher(source, layers=settings)
    file = find_learned(None if source == HABITS else source)
    name = Path(source).name or source
    return Teacher(name, habits=load_habits(file)) if file.suffix == ".json" else Teacher(name, net=files.load(file))


class Asking(Player):
    """A student that asks those who answer in the market what they would do, before it chooses."""

    def __init__(self, *given: Any, teachers: Sequence[Teacher] = ()) -> None:
        super().__init__(*given)
        market, mine = given[0], given[2]
        self._asked = [teacher.policy(market, mine) for teacher in teachers]
        self.told: Tensor = None  # [n, A, teachers, heads] what they would choose

    def open(self, market: Market) -> None:
        """A new morning, for everybody."""
        for other in self._asked:
            other.open(market)
        super().open(market)

    def hear(self, market: Market) -> None:
        """A half-round, for everybody."""
        for other in self._asked:
            other.hear(market)
        super().hear(market)

    def close(self, market: Market) -> None:
        """An evening, for everybody."""
        for other in self._asked:
            other.close(market)
        super().close(market)

    def sale(self, market: Market, rows: Rows, *situation: Any) -> Any:
        """Ask, then choose."""
        if self._asked:
            state, caps, threads, issue, alpha = situation[:5]
            sale = around.look(state, caps, threads, issue, alpha, self.options)
            self.told = torch.stack([self._entries(market, rows, other, sale) for other in self._asked], 2)
        return super().sale(market, rows, *situation)

    def _entries(self, market: Market, rows: Rows, other: Policy, sale: Any) -> Tensor:
        """[n, A, heads] the entries that say best what the other one answers."""
        moves, places = other.answer(market, rows)
        dense = torch.full((4, market.threads.running.numel()), -1, device=market.device)
        dense[:, places] = torch.stack([part.long() for part in moves])
        op, units, price, ahead = dense[:, rows.threads[:, CONSUMERS]].unbind(0)  # [n, A]
        wishes, issue = sale.wishes, sale.issue
        accepts = (wishes.op == ACCEPT) & ~torch.isnan(sale.threads.received.quantity)
        entry = torch.where(op == ACCEPT, torch.where(accepts, around.AS_RULE, around.OP_ACCEPT), around.AS_RULE)
        entry = torch.where((op == OFFER) & accepts, around.OP_COUNTER, entry)
        lots = torch.tensor(around.LOTS, device=market.device)
        lot = (units[..., None] - lots).abs().argmin(-1) + 1
        lot = torch.where(units == wishes.quantity.floor(), 0, lot)
        low, span = issue.price_min[:, None], (issue.price_max - issue.price_min).clamp(min=1)[:, None]
        places_of = torch.tensor(around.POSITIONS, device=market.device)
        money = (((price - low) / span)[..., None] - places_of).abs().argmin(-1) + 1
        money = torch.where(price == wishes.price.round(), 0, money)
        day = torch.where(ahead == 0, 1 + around.DAYS.index(TODAY), 1 + around.DAYS.index(NEXT))
        offers = op == OFFER
        return torch.stack([entry, *(torch.where(offers, part, 0) for part in (lot, money, day))], -1)


class TaughtGround(Ground):
    """Worlds of a student, with what its asking teachers told about each choice."""

    told: list[Tensor]

    def add(self, market: Market, seats: Tensor, x: Tensor, chosen: Any, logp: Tensor) -> None:
        """Write down the choices of a round, and the teachers' entries."""
        super().add(market, seats, x, chosen, logp)
        if isinstance(self.player, Asking) and self.player.told is not None:
            self.told.append(self.player.told[torch.as_tensor(chosen.free)])


def entry_shares(entries: Tensor, mask: Tensor) -> Tensor:
    """[M, C] certain choices [M, heads]; an entry that is not open counts as doing as the rule does."""
    parts = []
    for head, (start, size) in enumerate(zip(_STARTS, around.HEADS)):
        is_open = mask[:, start : start + size].gather(1, entries[:, head : head + 1])[:, 0]
        chosen = torch.where(is_open, entries[:, head], 0)
        parts.append(torch.nn.functional.one_hot(chosen, size).float())
    return torch.cat(parts, -1)
