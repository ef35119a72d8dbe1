"""The market itself: mornings, half-rounds, evenings, for all worlds of a batch at once.

    market = Market(make_setup(configs))
    while market.playing.any():
        market.open_day()
        for _ in range(HALVES):
            market.move(policy(market))
        market.close_day()
    market.scores()

Worlds may have different numbers of days: those that are over do nothing and keep their balances. `restart` puts new
worlds into some places of the batch while the others go on.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from marlab.market.vector.books import HORIZON, MOST_PRICE, Books, open_books
from marlab.market.vector.rounds import HALVES, Moves, Ranges, Threads, move, open_threads
from marlab.market.vector.settle import FIRST_WEIGHT, Evening, Outside, Rates, Traded, new_prices, settle
from marlab.market.vector.setup import Setup, pairs_of

PRICE_RANGE = 0.1
"""Unit prices of offers lie within a tenth of the morning's trading price."""


class Market:
    """A batch of worlds. Read its attributes freely; change them only by its methods."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.worlds, self.levels, self.wide = setup.shape
        self.quantity_most = int(setup.quantity_max.max())
        device = setup.lines.device
        self.day = torch.zeros(self.worlds, dtype=torch.int32, device=device)
        self.balance = setup.balance.clone()
        self.stock = torch.zeros_like(setup.lines)
        self.prices = setup.catalogue.clone()
        self.weight = torch.full_like(self.prices, FIRST_WEIGHT)
        self.bankrupt = torch.zeros_like(setup.exists)
        shape = (self.worlds, self.levels - 1, self.wide, self.wide)
        self.books: Books = open_books(shape, device)
        self.half = HALVES
        """The next half-round: callers move in even ones, responders in odd ones; HALVES: the negotiations are over."""
        self.threads: Threads = open_threads(torch.zeros(shape, dtype=torch.bool, device=device))
        self.outside = self._outside()
        self.ranges = self._ranges()

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.day.device

    @property
    def playing(self) -> Tensor:
        """[B]: worlds that have days left."""
        return self.day < self.setup.n_steps

    def open_day(self) -> None:
        """The morning: today's exogenous contracts, the ranges of offers, and a thread for every pair that trades."""
        self.outside, self.ranges = self._outside(), self._ranges()
        able = self.setup.exists & ~self.bankrupt & self.playing[:, None, None]
        calling, answering = pairs_of(able)
        self.threads = open_threads(calling & answering)
        self.half = 0

    def move(self, moves: Moves) -> None:
        """One half-round: the moves of everybody whose turn it is; contracts are signed at once."""
        move(self.threads, moves, self.ranges, self.half)
        self.half += 1

    def close_day(self, rank: Tensor | None = None) -> Evening:
        """The evening: today's contracts are delivered and paid, prices move, the next day begins.

        `rank` [B, P, C, R]: the order in which today's contracts were signed, where it is known from outside.
        """
        self.books.sign(self.threads, rank)
        playing = self.playing[:, None, None]
        traded = self._due()
        evening = settle(traded, self.outside, self._rates(), self.balance, self.stock)
        kept = (evening.arrived - evening.produced).clamp(min=0)
        self.stock = torch.where(playing, self.stock + kept, self.stock)
        self.balance = torch.where(playing, self.balance + evening.profit, self.balance)
        units, money = self._products(traded)
        prices, weight = new_prices(self.prices, self.weight, units, money)
        self.prices = torch.where(playing[..., 0], prices, self.prices)
        self.weight = torch.where(playing[..., 0], weight, self.weight)
        self.bankrupt = self.bankrupt | (self.balance < 0)
        self.books.next_day()
        self.day = self.day + self.playing.to(self.day.dtype)
        self.half = HALVES
        return evening

    def scores(self) -> Tensor:
        """[B, L, A]: balance by opening balance; nan where there is no factory."""
        return torch.where(self.setup.exists, self.balance / self.setup.balance, torch.nan)

    def restart(self, worlds: Tensor, setup: Setup) -> None:
        """Begin anew in some worlds ([B] bool); `setup` has the whole batch's shape, its other worlds are ignored."""
        self.setup = Setup(*(_mixed(worlds, new, old) for new, old in zip(setup, self.setup)))
        fresh = Market(setup)
        for name in ("day", "balance", "stock", "prices", "weight", "bankrupt"):
            setattr(self, name, _mixed(worlds, getattr(fresh, name), getattr(self, name)))
        self.books.clear(worlds)

    def get_state(self) -> dict[str, Any]:
        """Everything that changes, as tensors and plain numbers; the setup is not part of it."""
        state: dict[str, Any] = {name: getattr(self, name).clone() for name in _STATE}
        state |= {f"threads.{f.name}": getattr(self.threads, f.name).clone() for f in fields(Threads)}
        state |= {f"books.{name}": getattr(self.books, name).clone() for name in _BOOKS}
        return state | {"half": self.half, "books.clock": self.books.clock}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave, with the same setup."""
        for name in _STATE:
            setattr(self, name, state[name].clone())
        self.threads = Threads(*(state[f"threads.{f.name}"].clone() for f in fields(Threads)))
        books = (state[f"books.{name}"].clone() for name in _BOOKS)
        self.books = Books(int(state["books.clock"]), *books)
        self.half = int(state["half"])
        self.outside, self.ranges = self._outside(), self._ranges()

    def today(self, values: Tensor) -> Tensor:
        """Today's row of values [B, T, ...]."""
        last = values.shape[1] - 1
        return values[torch.arange(self.worlds, device=self.device), self.day.clamp(max=last).long()]

    def _outside(self) -> Outside:
        setup, playing = self.setup, self.playing[:, None]
        none = torch.zeros_like(setup.lines)
        out_units, out_price = none.clone(), none.clone()
        out_units[:, -1] = self.today(setup.demand_units) * playing
        out_price[:, -1] = self.today(setup.demand_price)
        first = setup.first[..., None]
        in_units = torch.where(first, (self.today(setup.supply_units) * playing)[:, None], none)
        in_price = torch.where(first, self.today(setup.supply_price)[:, None], none)
        return Outside(in_units, in_price, out_units, out_price)

    def _ranges(self) -> Ranges:
        tp = self.prices[:, 1:-1, None, None]
        low = (tp * (1.0 - PRICE_RANGE)).to(torch.int32).clamp(min=1)
        high = ((1.0 + PRICE_RANGE) * tp).to(torch.int32).clamp(max=MOST_PRICE)
        days_left = self.setup.n_steps - 1 - self.day
        return Ranges(
            torch.minimum(low, high),
            torch.maximum(low, high),
            days_left.clamp(max=HORIZON)[:, None, None, None],
            self.setup.quantity_max[:, None, None, None],
        )

    def _rates(self) -> Rates:
        setup, tp = self.setup, self.prices
        shortfall = self.today(setup.shortfall)
        penalty = shortfall * tp[:, 1:, None]
        return Rates(setup.lines, setup.cost, setup.storage * tp[:, :-1, None], penalty)

    def _due(self) -> Traded:
        """What is delivered today: not the contracts of factories that went bankrupt on an earlier day."""
        slot = self.books.slot
        gone_calling, gone_answering = pairs_of(self.bankrupt)
        valid = ~(gone_calling | gone_answering)
        units, money = self.books.units[slot] * valid, self.books.money[slot] * valid
        return Traded(units, money, self.books.lots[slot] * valid[..., None], self.books.ages())

    def _products(self, traded: Traded) -> tuple[Tensor, Tensor]:
        """Units and money [B, L + 1] that changed hands today, by product; the market's own contracts count."""
        dtype, outside = self.balance.dtype, self.outside
        units = torch.zeros_like(self.prices)
        money = torch.zeros_like(self.prices)
        units[:, 1:-1] = traded.units.sum((2, 3)).to(dtype)
        money[:, 1:-1] = traded.money.sum((2, 3)).to(dtype)
        units[:, :-1] += outside.in_units.sum(2).to(dtype)
        money[:, :-1] += (outside.in_units * outside.in_price).sum(2).to(dtype)
        units[:, 1:] += outside.out_units.sum(2).to(dtype)
        money[:, 1:] += (outside.out_units * outside.out_price).sum(2).to(dtype)
        return units, money


_BOOKS = ("lots", "units", "money", "signed")
_STATE = ("day", "balance", "stock", "prices", "weight", "bankrupt")


def _mixed(worlds: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(worlds.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
