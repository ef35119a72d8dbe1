"""The learner in the vector market: rule W's memory and purchases, with a network's choices in selling threads.

Policies of one market share the memory of one rule: what is remembered about partners is the same for the rule, the
learner and its past selves, and it is the costly part.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch

from marlab.lab.ppo.choices import apply_mask, log_prob
from marlab.market.logs.daystate import DayState
from marlab.market.rules import around, l1, plan
from marlab.market.rules.l1 import ECONOMIC, Action
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import Outlooks, RuleW
from marlab.market.vector.seats import CONSUMERS, Rows

Tensor = Any
"""A torch.Tensor; the rules' types name numpy's arrays."""


class SharedRule(RuleW):
    """Rule W in other seats of a market, with the memory of a rule that already listens."""

    def __init__(self, other: RuleW) -> None:
        self.__dict__.update(vars(other))
        self.other = other
        self._outlooks = Outlooks(self.memory), Outlooks(self.memory)  # these are for the rows that one asks about
        self._sells_itself = type(self).sale is not RuleW.sale

    def open(self, market: Market) -> None:
        """The other one was told before."""
        self._goal = self.other._goal

    def hear(self, market: Market) -> None:
        """The other one was told."""

    def close(self, market: Market) -> None:
        """The other one was told."""


class Notes(Protocol):
    """Where choices are written down."""

    step: int
    """The round, counted from the start of the rollout."""

    def note(self, rows: Any) -> None:
        """Choices as they are."""

    def add(self, market: Market, seats: Tensor, x: Tensor, chosen: around.Chosen, logp: Tensor) -> None:
        """Choices of seats [n] (their numbers) with inputs [n, K, D] and log-probabilities [n, K]."""


class Player(SharedRule):
    """A network around the rule, in the seats `mine` [B, L, A]."""

    def __init__(
        self, market: Market, other: RuleW, mine: Tensor, net: Any, generator: torch.Generator | None,
        notes: Notes | None = None,
    ) -> None:  # fmt: skip
        """`generator`: draw choices; None: greedy."""
        super().__init__(other)
        self.mine, self.net, self.generator, self.notes = mine, net, generator, notes
        self.rows = other.memory.seats.rows(mine)  # [N]
        self.number = torch.zeros(mine.shape, dtype=torch.long, device=market.device)
        self.number[self.rows.seat] = torch.arange(len(self.rows), device=market.device)
        self._partners: Tensor | None = None  # [N, A, 24]

    def open(self, market: Market) -> None:
        """A new morning: what is known about partners."""
        super().open(market)
        known = self.memory.known(self.rows, CONSUMERS)
        day: Tensor = market.day[self.rows.world].to(self.mornings.dtype)
        partners: Tensor = around.partner_inputs(known, day)
        self._partners = partners.float()

    @torch.no_grad()
    def sale(
        self, market: Market, rows: Rows, state: DayState, caps: l1.Caps, threads: plan.Threads, issue: l1.Issue,
        alpha: Tensor,
    ) -> plan.Answers:  # fmt: skip
        """The network's choices around the rule's wishes."""
        told = self.wished(state, caps, threads, issue, alpha)
        sale = around.look(state, caps, threads, issue, alpha, self.options, told)
        x = self.seen(market, rows, sale)
        logits: Tensor = self.net.logits(x)
        chosen: Any = around.serve(sale, ECONOMIC, logits, self.noise(logits), self.net.freedom)
        if self.notes is not None:
            logp = log_prob(apply_mask(logits, chosen.mask), chosen.choices, around.HEADS)
            self.notes.add(market, self.number[rows.seat], x, chosen, logp)
        return chosen.answers

    def noise(self, logits: Tensor) -> Tensor | None:
        """[n, K, C] what is added to logits before the largest is taken; None: greedy."""
        if self.generator is None:
            return None
        drawn = torch.empty_like(logits).exponential_(generator=self.generator)
        return -drawn.clamp_min_(torch.finfo(drawn.dtype).tiny).log_()  # of the softmax

    @property
    def partners(self) -> Tensor:
        """[N, A, 24] what is known about partners this morning."""
        assert self._partners is not None
        return self._partners

    def seen(self, market: Market, rows: Rows, sale: around.Sale) -> Tensor:
        """[n, K, D] inputs of the rows' threads."""
        dtype = self.mornings.dtype
        partners = self.partners[self.number[rows.seat]].to(dtype)
        found: Tensor = around.inputs(sale, self._own(market, rows, dtype), partners)
        return found.float()

    def _own(self, market: Market, rows: Rows, dtype: torch.dtype) -> Action:
        """My last offers of today [n, A], of the half-round before the partner's; nan without one."""
        half, memory = market.half - 2, self.memory
        if half < 0:
            nothing: Tensor = torch.full((len(rows), market.wide), math.nan, dtype=dtype, device=market.device)
            return Action(nothing, nothing, nothing)
        places = rows.threads[:, CONSUMERS]
        terms: list[Tensor] = [part[half].reshape(-1)[places] for part in (memory.units, memory.price, memory.ahead)]
        return Action(*(part.to(dtype).masked_fill(terms[0] == 0, math.nan) for part in terms))
