"""Beliefs of factories about their partners in the vector market.

`Watch` says what partners answered in the half-round before, as `rules.beliefs` wants it; an observer is fitted to
recorded worlds that are watched in the same way. `Beliefs` keeps the posteriors: it has to be told about every morning,
half-round and evening. Both sides of a thread may watch each other, so there are two posteriors a thread: the caller's
about the responder (0) and the responder's about the caller (1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from marlab.market.rules import beliefs
from marlab.market.rules.beliefs import Answers, Observer
from marlab.market.rules.l1 import Action
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, HALVES, OFFER, ROUNDS
from marlab.market.vector.seats import Rows, Seats
from marlab.market.vector.setup import pairs_of

Tensor = Any
"""A torch.Tensor. The rules work on numpy arrays and tensors alike; their types name the former."""


class Seen(NamedTuple):
    """What some watchers saw of their partners in one half-round."""

    watcher: int  # 0: callers watch, 1: responders
    places: Tensor  # [M], in flattened threads [B, P, C, R]
    answers: Answers


class Watch:
    """The answers of the half-round before, for watchers in the seats `mine` [B, L, A] (bool; None: everybody).

    `selling`: only those who sell watch, their buyers.
    """

    def __init__(self, market: Market, mine: Tensor | None = None, selling: bool = False) -> None:
        self.mine, self._selling = mine, selling
        self._buyer_calls = Seats(market).buyer_calls
        self._running = market.threads.running
        self._tables: list[tuple[Tensor, Tensor, Tensor]] = []  # what was on the table, latest last

    def open(self, market: Market) -> None:
        """After the market's `open_day`."""
        threads = market.threads
        self._running = threads.running
        self._tables = [(threads.units, threads.price, threads.ahead)] * 2

    def heard(self, market: Market) -> Seen | None:
        """Before anybody answers in a half-round, and once more after the last one."""
        if market.half == 0:
            return None
        half, threads = market.half - 1, market.threads
        watcher = 1 - half % 2
        running, self._running = self._running, threads.running
        (before, mine), table = self._tables, (threads.units, threads.price, threads.ahead)
        self._tables = [mine, table]
        found = running & self._watched(market, watcher)
        if half // 2 >= ROUNDS - 1:  # nobody tells leaving from running out of time, nor hears the last offer
            found = found & (threads.agreed_half == half) & (threads.agreed_units > 0)
        places = found.reshape(-1).nonzero()[:, 0]
        if not len(places):
            return None
        return Seen(watcher, places, self._answers(market, half, places, mine, before, table))

    def _watched(self, market: Market, watcher: int) -> Tensor:
        """[B, P, C, R], bool, or what broadcasts to it."""
        found = self._buyer_calls[:, None, None] == (watcher == 1) if self._selling else True
        if self.mine is not None:
            found = pairs_of(self.mine)[watcher] & found
        return found

    def _answers(
        self, market: Market, half: int, places: Tensor, mine: tuple[Tensor, ...], before: tuple[Tensor, ...],
        table: tuple[Tensor, ...],
    ) -> Answers:  # fmt: skip
        threads, ranges, dtype = market.threads, market.ranges, market.balance.dtype
        wide = market.wide * market.wide
        k = torch.div(places, wide, rounding_mode="floor") % (market.levels - 1)
        world = torch.div(places, wide * (market.levels - 1), rounding_mode="floor")
        low, high = (price.flatten(1)[world, k].to(dtype) for price in (ranges.price_low, ranges.price_high))

        def terms(offer: tuple[Tensor, ...]) -> Action:
            units, price, ahead = (part.reshape(-1)[places].to(dtype) for part in offer)
            position = (price - low) / (high - low).clamp(min=1)
            none = units <= 0
            return Action(*(part.masked_fill(none, 0.0) for part in (units, position, ahead)))

        offered = threads.running.reshape(-1)[places]
        agreed = (threads.agreed_half.reshape(-1)[places] == half) & (threads.agreed_units.reshape(-1)[places] > 0)
        op = torch.where(offered, OFFER, torch.where(agreed, ACCEPT, END))
        buys = self._buyer_calls[k] == (half % 2 == 0)  # whether the one who answers buys
        first = market.setup.first[world, k]
        edge = torch.where(buys, k == market.levels - 2, first)
        given: Any = terms(table)
        offer = Action(*(part.masked_fill(~offered, 0.0) for part in given))
        none = torch.zeros_like(low)
        return Answers(
            selling=buys, calls=torch.full_like(buys, half % 2 == 0), edge=edge,
            day=market.day[world].to(dtype), n_steps=market.setup.n_steps[world].to(dtype), round=none + half // 2,
            mine=terms(mine), before=terms(before), op=op, offer=offer,
        )  # fmt: skip


class Beliefs:
    """Posteriors of the watchers about their partners."""

    def __init__(
        self, market: Market, observer: Observer, mine: Tensor | None = None, selling: bool = False
    ) -> None:  # fmt: skip
        self.watch = Watch(market, mine, selling)
        self.observer = observer.like(market.balance)
        shape = (2, *market.threads.units.shape)
        self._fresh = beliefs.prior((1,) * len(shape), self.observer, market.balance)
        self.morning = beliefs.prior(shape, self.observer, market.balance)  # [2, B, P, C, R, Y]
        self.evidence = torch.zeros_like(self.morning)  # of today

    def open(self, market: Market) -> None:
        """A new morning: yesterday's answers enter; worlds on their first day know nobody."""
        options = self.observer.options
        known = beliefs.next_day(beliefs.posterior(self.morning, self.evidence, options), options)
        fresh = (market.day == 0)[:, None, None, None, None]
        self.morning = torch.where(fresh, self._fresh, known)
        self.evidence = torch.zeros_like(self.morning)
        self.watch.open(market)

    def hear(self, market: Market) -> None:
        """Before anybody answers in a half-round."""
        seen = self.watch.heard(market)
        if seen is not None:
            found = beliefs.log_likelihoods(self.observer, seen.answers)
            self.evidence[seen.watcher].view(-1, self.observer.size)[seen.places] += found

    def close(self, market: Market) -> None:
        """After the last half-round of a day."""
        assert market.half == HALVES
        self.hear(market)

    def of(self, market: Market, rows: Rows, side: int) -> Tensor:
        """[N, A, Y] log-probabilities that rows give their partners of one side now; the rows' turn it is."""
        watcher, places = market.half % 2, rows.threads[:, side]
        morning, evidence = (
            values[watcher].view(-1, self.observer.size)[places] for values in (self.morning, self.evidence)
        )
        return beliefs.posterior(morning, evidence, self.observer.options)

    def get_state(self) -> dict[str, Tensor]:
        """What changes, on a morning: evidence of a day that was cut is not kept."""
        return {"morning": self.morning.clone(), "evidence": self.evidence.clone()}

    def set_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what `get_state` gave."""
        self.morning, self.evidence = state["morning"].clone(), state["evidence"].clone()
