"""What factories of the vector market remember of offers and of partners, for the policies that ask.

`Memory` keeps the offers of today and yesterday, faded and summed by delivery day, and the records of the partners on
some sides of some seats. It has to be told about every morning, half-round and evening.

Letters: N rows (factories), A partners of a side, M offers, S days of a plan.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from marlab.market.rules import records
from marlab.market.rules.bargain import LAST_ROUND
from marlab.market.rules.l1 import Action
from marlab.market.rules.offers import FADES, OfferSlots
from marlab.market.rules.offers import ROUNDS as YESTERDAY
from marlab.market.rules.records import Records
from marlab.market.vector.books import SLOTS
from marlab.market.vector.market import Market
from marlab.market.vector.quick.native import Native, packed
from marlab.market.vector.rounds import HALVES, ROUNDS, Ranges, Threads
from marlab.market.vector.seats import CONSUMERS, SUPPLIERS, Rows, Seats, movers

Tensor = Any
"""A torch.Tensor. The rules work on numpy arrays and tensors alike; their types name the former."""
REPORT_DAYS = 5
"""Factories publish their cash on every fifth day."""


class Memory:
    """Offers of all factories, and records of the partners of some."""

    def __init__(
        self,
        market: Market,
        dtype: torch.dtype,
        chosen: Tensor | None = None,
        sides: tuple[int, ...] = (CONSUMERS,),
        code: Native | None = None,
    ) -> None:
        """`chosen` [B, L, A]: the seats that remember partners, by default all; `sides`: which partners; `code`: add
        offers by C code."""
        self.seats, self.dtype, self._code = Seats(market), dtype, code
        seats, device = market.setup.lines.shape, market.device
        self.chosen = torch.ones(seats, dtype=torch.bool, device=device) if chosen is None else chosen
        self.partners = {side: Partners(market, self, side) for side in sides}
        # offers of every half-round, [HALVES, B, P, C, R]; units 0: none was made
        self.units = torch.zeros((HALVES, *market.threads.units.shape), dtype=torch.int32, device=device)
        self.price, self.ahead = torch.zeros_like(self.units), torch.zeros_like(self.units)
        self._sides = self._ends(market)
        self._concerned = self.chosen.flatten(1)[:, self._sides // 2].any(1)  # [B, cells]: threads of chosen seats
        # weight, weighted price, pressure
        self.sums = torch.zeros((market.worlds * seats[1] * seats[2] * 2 * SLOTS, 3), dtype=dtype, device=device)
        self.latest = torch.full(seats, -math.inf, dtype=dtype, device=device)  # clock of the latest known offer
        self._before: tuple[Tensor, Threads, Ranges] | None = None  # yesterday: threads in the morning and evening
        self._opened = market.threads.running

    def open(self, market: Market) -> None:
        """A new morning: yesterday's negotiations enter the records, its offers fade; first days begin empty."""
        if self._before is not None:
            for partners in self.partners.values():
                partners.remember(market, self, *self._before)
        self.sums.zero_()
        self.latest.fill_(-math.inf)
        if self._code is not None:
            self._note(self._code, market, range(HALVES), yesterday=True)
        else:
            self._add(market, (self.units > 0) & (market.day > 0)[:, None, None, None], yesterday=True)
        self.units.zero_()
        self._opened = market.threads.running

    def hear(self, market: Market) -> None:
        """The offers of the half-round before, which are on the table now."""
        half, threads = market.half - 1, market.threads
        if half >= 0:
            self.units[half] = threads.units * threads.running
            self.price[half], self.ahead[half] = threads.price, threads.ahead
            if half < HALVES - 1 and self._code is not None:
                self._note(self._code, market, range(half, half + 1))
            elif half < HALVES - 1:
                self._add(market, threads.running[None], half)

    def close(self, market: Market) -> None:
        """The end of the negotiations: what they came to is remembered tomorrow."""
        self.hear(market)
        self._before = self._opened, market.threads, market.ranges

    def known(self, rows: Rows, side: int) -> Records:
        """What rows remember about their partners [N, A] on a side."""
        partners = self.partners[side]
        return partners.records.take(partners.number[rows.seat])

    def _ends(self, market: Market) -> Tensor:
        """[2, cells]: the side (seat in its world, times two, plus side) of those who call and of those who answer."""
        k, caller, responder = (
            axis.flatten() for axis in torch.meshgrid(*map(torch.arange, market.threads.units.shape[1:]), indexing="ij")
        )
        buying = self.seats.buyer_calls.cpu()[k]
        calls = (torch.where(buying, k + 1, k) * market.wide + caller) * 2 + torch.where(buying, SUPPLIERS, CONSUMERS)
        answers = torch.where(buying, k, k + 1) * market.wide + responder
        return torch.stack([calls, answers * 2 + torch.where(buying, CONSUMERS, SUPPLIERS)]).to(market.device)

    def _add(self, market: Market, made: Tensor, first: int = 0, yesterday: bool = False) -> None:
        """Offers `made` [H, B, P, C, R] from half-round `first` on into the sums of those who know them."""
        at = (made.flatten(2) & self._concerned).nonzero(as_tuple=True)
        if not len(at[0]):
            return
        half, world, cell = at[0] + first, at[1], at[2]
        place = (half * market.worlds + world) * made[0, 0].numel() + cell
        units, price, day = (v.view(-1)[place].to(self.dtype) for v in (self.units, self.price, self.ahead))
        spot = market.prices[world, 1 + cell // market.wide**2].to(self.dtype).clamp(min=1)
        trust = torch.sqrt(units / (units + 10))
        if yesterday:
            day = day - 1
            trust = trust * (day >= 0)
        seats = market.levels * market.wide
        side = self._sides[:, cell]  # [2, M]
        mine = half % 2 == torch.arange(2, device=half.device)[:, None]
        clock = torch.div(half + ~mine, 2, rounding_mode="floor").to(self.dtype) - YESTERDAY * yesterday
        heard = mine | (half < HALVES - 1)  # nobody hears the last offer of a day
        weight = torch.exp(FADES * clock) * (trust * heard)
        good = torch.where(side % 2 == CONSUMERS, price / spot, spot / price.clamp(min=1)).clamp(0.5, 2)
        index = (world * (seats * 2) + side) * SLOTS + day.clamp(0, SLOTS - 1).long()
        amounts = torch.stack([weight, weight * price, weight * units * good], -1)
        self.sums.index_add_(0, index.flatten(), amounts.flatten(0, 1))
        clock = clock.masked_fill(~heard, -math.inf)
        self.latest.view(-1).scatter_reduce_(0, (world * seats + side // 2).flatten(), clock.flatten(), "amax")

    def _note(self, code: Native, market: Market, halves: range, yesterday: bool = False) -> None:
        """The same by C code, which finds the offers of half-rounds by itself."""
        callers = torch.zeros(market.levels, dtype=torch.bool, device=market.device)
        callers[movers(market.levels, 0)] = True
        calls = callers[:, None].expand(-1, 2).contiguous()
        cells, spot = self.units[0, 0].numel(), market.prices.to(self.dtype).contiguous()
        all_cells, seats = self.units[0].numel(), self.latest.numel()
        numbers = (seats, halves.start, halves.stop, int(yesterday), cells, all_cells, market.levels)
        tensors = (
            self.seats.index, self.seats.sides, calls, self.units, self.price, self.ahead, spot, market.day,
            self.sums, self.latest,
        )  # fmt: skip
        code.note(packed(numbers, tensors, market.device), seats)

    def slots(self, rows: Rows) -> OfferSlots:
        """Sums [N, 2, S] of the offers known to rows, faded by age."""
        latest = self.latest[rows.seat]
        faded = torch.where(latest > -math.inf, torch.exp(-FADES * latest), 0.0)[:, None, None, None]
        sums: Tensor = self.sums.view(*self.latest.shape, 2, SLOTS, 3)[rows.seat] * faded
        return OfferSlots(*sums.unbind(-1))

    def heard(self, market: Market, rows: Rows, side: int) -> Action:
        """The partners' offers of today [N, A, T]: units, prices, days from today; nan where there is none."""
        halves = range((market.half + 1) % 2, market.half, 2)
        if not len(halves):
            none: Tensor = torch.full((len(rows), market.wide, 1), math.nan, dtype=self.dtype, device=market.device)
            return Action(none, none, none)
        cut = slice(halves[0], market.half, 2)
        columns: list[Tensor] = [
            values[cut].flatten(1)[:, rows.threads[:, side]].permute(1, 2, 0).to(self.dtype)
            for values in (self.units, self.price, self.ahead)
        ]
        missing = columns[0] == 0
        return Action(*(column.masked_fill(missing, math.nan) for column in columns))


class Partners:
    """Records of the partners on one side of some seats: [N, A]."""

    def __init__(self, market: Market, memory: Memory, side: int) -> None:
        has = memory.seats.sides[None, :, None, side]
        self.side, self.rows = side, memory.seats.rows(memory.chosen & has)
        self.number = torch.zeros(memory.chosen.shape, dtype=torch.long, device=market.device)
        self.number[self.rows.seat] = torch.arange(len(self.rows), device=market.device)
        """[B, L, A] where a seat's records are."""
        calling = torch.zeros(market.levels, dtype=torch.bool, device=market.device)
        calling[movers(market.levels, 0)] = True
        self._calls = calling[self.rows.level][:, None]  # [N, 1]
        like: Tensor = torch.zeros((), dtype=memory.dtype, device=market.device)
        self._strangers = records.empty((1, 1), like)
        self.records = records.empty((len(self.rows), market.wide), like)
        self._condensed: Tensor | None = None  # [fields, N, A]

    def condensed(self, rows: Rows) -> Records:
        """`records.condensed` of rows, for today's negotiations."""
        values = self.table()[:, self.number[rows.seat]].unbind(0)
        fields = zip(Records._fields, values)
        return Records(*(value[..., None] if name in records.RINGS else value for name, value in fields))

    def table(self) -> Tensor:
        """[fields, N, A]: `records.condensed` of all of them."""
        if self._condensed is None:
            sums: Any = records.condensed(self.records)
            self._condensed = torch.stack([values.view(self.records.units.shape) for values in sums])
        return self._condensed

    def remember(self, market: Market, memory: Memory, opened: Tensor, before: Threads, ranges: Ranges) -> None:
        """Yesterday's negotiations enter; in worlds that begin everybody is a stranger."""
        self.records, self._condensed = self._after(market, memory, opened, before, ranges), None
        fresh = (market.day == 0)[self.rows.world]
        if bool(fresh.any()):
            self.records = Records(*(_first(fresh, new, old) for new, old in zip(self._strangers, self.records)))

    def _after(self, market: Market, memory: Memory, opened: Tensor, before: Threads, ranges: Ranges) -> Records:
        dtype, places = memory.dtype, self.rows.threads[:, self.side]  # [N, A]

        def mine(values: Tensor) -> Tensor:
            return values.reshape(-1)[places]

        there = mine(opened)
        low, high = (mine(bound.expand(opened.shape)).to(dtype) for bound in (ranges.price_low, ranges.price_high))
        units, price = mine(before.agreed_units).to(dtype), mine(before.agreed_price).to(dtype)
        ended = mine(torch.where(before.running, HALVES, before.ended_half))
        rounds: Tensor = (torch.div(ended, 2, rounding_mode="floor") + 1).clamp(max=ROUNDS).to(dtype)
        day: Tensor = (market.day - 1).to(dtype)[self.rows.world][:, None]
        known = records.after_negotiations(self.records, there, day, rounds, units, price, low, high)
        known = records.after_reports(known, *self._reports(market, dtype))
        return records.after_talks(known, there, *self._talks(memory, there, ended, units, low, high))

    def _reports(self, market: Market, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Whose cash was published yesterday evening [N, A], and how much."""
        world, other = self.rows.world, self.rows.level + (1 if self.side == CONSUMERS else -1)
        published = ((market.day - 1) % REPORT_DAYS == 0)[world][:, None]
        return market.setup.exists[world, other] & published, market.balance[world, other].to(dtype)

    def _talks(
        self, memory: Memory, there: Tensor, ended: Tensor, agreed: Tensor, low: Tensor, high: Tensor
    ) -> tuple[Action, Tensor, Tensor, Tensor]:
        """Yesterday's negotiations as the rows saw them: offers heard, offers made, units taken, who left."""
        calls, dtype = self._calls, memory.dtype
        longest = int(torch.where(there, ended, 0).max()) if len(ended) else 0
        last = min(ROUNDS, longest // 2 + 1)  # rounds that anybody used
        places = self.rows.threads[:, self.side]
        units, price, ahead = (
            values[: 2 * last].flatten(1)[:, places].to(dtype) for values in (memory.units, memory.price, memory.ahead)
        )  # [2 rounds, N, A]
        made = torch.where(calls, units[::2], units[1::2])  # mine [rounds, N, A]
        heard, asked, days = (torch.where(calls, v[1::2], v[::2]) for v in (units, price, ahead))
        if last == ROUNDS:  # nobody hears the last offer
            heard[-1].masked_fill_(calls, 0)
        offered = heard > 0
        terms: tuple[Tensor, ...] = (heard, (asked - low) / (high - low).clamp(min=1), days)
        heard_of = Action(*(v.masked_fill(~offered, math.nan).permute(1, 2, 0) for v in terms))
        count = (made > 0).sum(0)
        latest = made.gather(0, (count - 1).clamp(min=0)[None])[0]
        # the other one ended it in answer to my offer, by taking it or by leaving
        answered = (count > 0) & (ended < HALVES) & (calls != (ended % 2 == 0))
        taken = torch.where(answered & (latest == agreed), agreed, 0.0)
        left = answered & (agreed == 0) & (torch.div(ended - 1, 2, rounding_mode="floor") < LAST_ROUND)
        return heard_of, count.to(dtype), taken, left


def _first(fresh: Tensor, blank: Tensor, known: Tensor) -> Tensor:
    """Records where a world goes on, blank ones where it has just begun."""
    return torch.where(fresh.reshape(-1, *(1,) * (known.ndim - 1)), blank, known)
