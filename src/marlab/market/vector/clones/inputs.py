"""What a clone sees when it answers a thread: everything its factory could know at that moment, nothing else.

The same code makes the inputs of recorded worlds, whose moves are played again in the market (`marlab market clone`),
and the inputs of play, so they are equal by construction. They come in three parts, because most of a thread's inputs
are those of its factory or of its side: row [N, ROW], side [N, 2, SIDE], thread [N, 2, A, THREAD]. A fourth part is
what the factory has answered in this half-round to the partners before (`added`), because decisions are made jointly:
the running threads of a side are answered in the order of partners, and both sides of a factory in step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from marlab.market.vector.books import SLOTS
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES
from marlab.market.vector.seats import CONSUMERS, SUPPLIERS, Rows

ROW, SIDE, THREAD, SO_FAR = 47, 23, 34, 10
"""How many inputs each part has."""
ALL = ROW + SIDE + THREAD + SO_FAR
VERSION = 2
"""Changes whenever an input changes its meaning: weights of other versions are refused."""
UNITS, MONEY = 10.0, 20.0
"""Units and prices are given in these."""
MOST = 5.0
"""No input is larger."""
FADES = 0.8
"""What a day leaves of a pair's record."""

Table = tuple[Tensor, Tensor, Tensor]
"""Units, price and days ahead of an offer in every thread; units 0: none."""


@dataclass
class Inputs:
    """Of N rows, and which of their threads run."""

    row: Tensor  # [N, ROW]
    side: Tensor  # [N, 2, SIDE]
    thread: Tensor  # [N, 2, A, THREAD]
    running: Tensor  # [N, 2, A], bool
    on_table: Tensor  # [N, 2, A], bool: there is an offer to be accepted
    table_units: Tensor  # [N, 2, A], of that offer
    table_ahead: Tensor
    price_low: Tensor  # [N, 2, 1]
    price_high: Tensor  # [N, 2, 1]
    units_max: Tensor  # [N, 1, 1]
    ahead_max: Tensor  # [N, 1, 1]
    round: int


class Watch:
    """What factories remember of today's offers and of earlier days with each partner. Told about every half-round."""

    def __init__(self, market: Market) -> None:
        shape, device = market.threads.units.shape, market.device
        none = torch.zeros(shape, dtype=torch.int32, device=device)
        self._nothing: Table = (none, none, none)
        self.table = self.mine = self.before = self._nothing
        """The offer on the table, my own last one, and the partner's before that."""
        # per pair, fading: talks, deals, their units, their price position, left by the caller, by the responder
        self.pairs = torch.zeros((6, *shape), dtype=torch.float32, device=device)
        self._opened = market.threads.running
        self._signed = market.books.signed[0].clone()  # units signed before this morning

    def open(self, market: Market) -> None:
        """A new morning; worlds on their first day remember nothing."""
        self.table = self.mine = self.before = self._nothing
        self.pairs = self.pairs * (market.day > 0)[None, :, None, None, None]
        self._opened = market.threads.running
        self._signed = market.books.signed[0].clone()

    def hear(self, market: Market) -> None:
        """Before a half-round: what was on the table is now the mover's own last offer."""
        if market.half > 0:
            threads = market.threads
            self.before, self.mine = self.mine, self.table
            self.table = (threads.units, threads.price, threads.ahead)

    def close(self, market: Market) -> None:
        """The evening: how today's talks ended."""
        threads, low, high = market.threads, market.ranges.price_low, market.ranges.price_high
        agreed = threads.agreed_units > 0
        position = (threads.agreed_price - low) / (high - low).clamp(min=1)
        left = self._opened & ~agreed & (threads.ended_half < HALVES)
        by_caller = left & (threads.ended_half % 2 == 0)
        seen = (agreed, threads.agreed_units * agreed / UNITS, position * agreed, by_caller, left & ~by_caller)
        today = torch.stack([self._opened.float(), *(values.float() for values in seen)])
        self.pairs = torch.where(self._opened, FADES * self.pairs + (1 - FADES) * today, self.pairs)

    def at(self, market: Market, rows: Rows) -> Inputs:
        """The inputs of rows that move now."""
        market.books.sign(market.threads)
        running = rows.gather(market.threads.running) & rows.sides[:, :, None]
        k = torch.stack([rows.level - 1, rows.level], 1).clamp(0, market.levels - 2)  # [N, 2], market of each side
        low, high = (
            values[..., 0, 0][rows.world[:, None], k].float()
            for values in (market.ranges.price_low, market.ranges.price_high)
        )
        offers = [_Offers.of(rows, table, low, high) for table in (self.table, self.mine, self.before)]
        offers[0].there = offers[0].there & running
        row, needs = self._rows(market, rows)
        side = self._sides(market, rows, running, offers[0], low, high, needs)
        thread = self._threads(market, rows, running, offers, needs)
        ranges = market.ranges
        lots, days = (values[rows.world][:, :, 0, 0, None] for values in (ranges.units_max, ranges.ahead_max))
        return Inputs(
            row, side, thread, running, offers[0].there, offers[0].units, offers[0].ahead, low[:, :, None],
            high[:, :, None], lots, days, market.half // 2,
        )  # fmt: skip

    def _rows(self, market: Market, rows: Rows) -> tuple[Tensor, Tensor]:
        """[N, ROW], and what each side still needs for today [N, 2]."""
        setup, seat, world = market.setup, rows.seat, rows.world
        order = market.books.order()
        units = market.books.signed[0][seat][..., order].float()  # [N, 2, S]
        new = units - self._signed[seat][..., order].float()  # signed today
        first, last = setup.first[world, rows.level], rows.level == market.levels - 1
        day, left = market.day[world].float(), (setup.n_steps - market.day)[world].float()
        into, out = market.outside.in_units[seat].float(), market.outside.out_units[seat].float()
        stock, lines = market.stock[seat].float(), setup.lines[seat].float()
        missing = out + units[:, CONSUMERS, 0] - units[:, SUPPLIERS, 0] - into - stock
        price_in, price_out = market.prices[world, rows.level].float(), market.prices[world, rows.level + 1].float()
        start_in = setup.catalogue[world, rows.level].float().clamp(min=1)
        start_out = setup.catalogue[world, rows.level + 1].float().clamp(min=1)
        cost = setup.cost[seat].float()
        columns = [
            day / (day + left), left / 50, (left / SLOTS).clamp(max=1), (left <= 1).float(), (day == 0).float(),
            first.float(), last.float(), setup.n_levels[world].float() / 4, lines / UNITS, cost / MONEY,
            (market.balance[seat] / setup.balance[seat]).float(), stock / UNITS, into / UNITS, out / UNITS,
            missing / UNITS, (missing > 0).float(), (missing < 0).float(), new[:, SUPPLIERS, 0] / UNITS,
            new[:, SUPPLIERS, 1:].sum(1) / UNITS, new[:, CONSUMERS, 0] / UNITS, new[:, CONSUMERS, 1:].sum(1) / UNITS,
            (price_out - price_in - cost) / MONEY, price_in / start_in, price_out / start_out,
            torch.full_like(day, market.half / HALVES),
        ]  # fmt: skip
        later = units / UNITS  # [N, 2, S]
        row = torch.cat([torch.stack(columns, 1), later[:, SUPPLIERS], later[:, CONSUMERS]], 1)
        return row.clamp(-MOST, MOST), torch.stack(
            [torch.where(first, 0.0, missing), torch.where(last, 0.0, -missing)], 1
        )

    def _sides(
        self, market: Market, rows: Rows, running: Tensor, table: _Offers, low: Tensor, high: Tensor, needs: Tensor
    ) -> Tensor:
        """[N, 2, SIDE]."""
        count = running.sum(2).float()
        partners = self._opened.reshape(-1)[rows.threads] & rows.sides[:, :, None]
        today = table.there & (table.ahead == 0)
        offered = table.there.sum(2).float()
        good = table.good()
        best = torch.where(table.there, good, 0.0).amax(2)
        units_today = (table.units * today).sum(2)
        most_today = (table.units * today).amax(2)
        storage, shortfall = market.setup.storage[rows.seat].float(), market.today(market.setup.shortfall)[rows.seat]
        shape = low.shape
        columns = [
            torch.arange(2.0, device=low.device).expand(shape), rows.sides.float(), count / 8,
            partners.sum(2) / 8, count / partners.sum(2).clamp(min=1), low / MONEY, high / MONEY, (high - low) / UNITS,
            needs / UNITS, (needs > 0).float(), needs.clamp(min=0) / count.clamp(min=1) / UNITS,
            offered / count.clamp(min=1), today.sum(2) / 8, units_today / UNITS, most_today / UNITS,
            (table.units * table.there).sum(2) / UNITS, best,
            (torch.where(table.there, good, 0.0).sum(2)) / offered.clamp(min=1),
            (needs - units_today) / UNITS, storage[:, None].expand(shape),
            shortfall.float()[:, None].expand(shape), *(self.pairs[1:3].flatten(1)[:, rows.threads] * partners).sum(3),
        ]  # fmt: skip
        return torch.stack([column.float() for column in columns], 2).clamp(-MOST, MOST)

    def _threads(self, market: Market, rows: Rows, running: Tensor, offers: list[_Offers], needs: Tensor) -> Tensor:
        """[N, 2, A, THREAD]."""
        table = offers[0]
        good, amount = table.good(), table.units * table.there
        today = table.there & (table.ahead == 0)
        place = torch.arange(market.wide, device=good.device)
        # before me among the offers for today: those with a better price, of equal ones the larger, then the earlier
        key = torch.where(today, good * 1000 + table.units - place * 1e-2, -1.0)
        ahead_of_me = (key[..., None, :] > key[..., :, None]) & today[..., None, :]
        before = (ahead_of_me * amount[..., None, :]).sum(3)
        pairs = self.pairs.flatten(1)[:, rows.threads]  # [6, N, 2, A]
        weight = pairs[0].clamp(min=0.05)
        deals, caller = pairs[1], market.half % 2 == 0
        partner_left, self_left = (pairs[5], pairs[4]) if caller else (pairs[4], pairs[5])
        need = needs[:, :, None]
        columns = [column for each in offers for column in each.columns()] + [
            (running.cumsum(2) - running.long()) / 8, (running.flip(2).cumsum(2).flip(2) - running.long()) / 8,
            ahead_of_me.sum(3) / 8, before / UNITS, (need - before) / UNITS,
            (need - before - amount) / UNITS, ((need - before - amount) >= 0).float() * today,
            ((need - amount) >= 0).float() * table.there, pairs[0], deals / weight, pairs[2] / deals.clamp(min=0.05),
            pairs[3] / deals.clamp(min=0.05), partner_left / weight, self_left / weight,
            # how the offers moved since the last round
            (offers[0].good() - offers[2].good()) * (offers[0].there & offers[2].there),
            (offers[0].units - offers[2].units) / UNITS * (offers[0].there & offers[2].there),
        ]  # fmt: skip
        return torch.stack([column.float() for column in columns], 3).clamp(-MOST, MOST)


@dataclass
class _Offers:
    """One offer per thread of rows, [N, 2, A] each."""

    there: Tensor
    units: Tensor
    ahead: Tensor
    position: Tensor  # of its price, 0 lowest, 1 highest

    @classmethod
    def of(cls, rows: Rows, table: Table, low: Tensor, high: Tensor) -> _Offers:
        units, price, ahead = (rows.gather(values).float() for values in table)
        there = (units > 0) & rows.sides[:, :, None]
        width = (high - low).clamp(min=1)[:, :, None]
        position = (price - low[:, :, None]) / width * there
        return cls(there, units * there, ahead * there, position)

    def good(self) -> Tensor:
        """How good its price is for me: 1 is the best; 0 where there is none."""
        buying = torch.where(self.there, 1 - self.position, 0.0)
        return torch.stack([buying[:, SUPPLIERS], self.position[:, CONSUMERS]], 1)

    def columns(self) -> list[Tensor]:
        """Six inputs."""
        today = self.there & (self.ahead == 0)
        return [self.there, self.units / UNITS, self.good(), self.ahead / UNITS, today, self.units * today / UNITS]


def added(accepts: Tensor, offers: Tensor, units: Tensor, ahead: Tensor) -> Tensor:
    """What one answer adds to the sums, [..., 5]: units accepted and offered, for today and later, and its count."""
    today = ahead == 0
    parts = (accepts & today, accepts & ~today, offers & today, offers & ~today)
    amounts = [units * part / UNITS for part in parts]
    return torch.stack([*amounts, (accepts | offers).to(amounts[0].dtype) / 8], -1)
