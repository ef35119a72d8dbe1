"""SyncRandomStdAgent as arrays: spreads today's needs over its partners at random, and a future day's over the others.

Written from what the agent is seen to do. Whole rows are decided at once; within a side, offers are weighed in the
order of partners, because every accepted one leaves less to be needed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marlab.market.vector.books import SLOTS
from marlab.market.vector.market import PRICE_RANGE, Market
from marlab.market.vector.rounds import ACCEPT, END, OFFER, ROUNDS, Moves
from marlab.market.vector.seats import CONSUMERS, Policy, Rows, commitments, needs_of
from marlab.market.vector.shares import split

TODAY_SHARE = 0.85
"""Share of partners that are offered today's needs; the others are asked about a later day."""
PRODUCTIVITY = 0.3
"""Share of its lines that a middle factory always seems to need today, and that it expects to use on later days."""
HEAP_TODAY, HEAP_LATER = 0.25, 0.75
"""How often as few partners as possible get everything."""
TODAY_POWER, LATER_POWER = 2.0, 4.0
"""How prices give way with time."""
LATER_FLOOR = 0.25
"""Share of the price range that is never given up for later days."""


class _Sides(NamedTuple):
    """One entry per side of a row on which it has running threads, M of them: what is known before deciding."""

    row: Tensor  # [M], which row
    sells: Tensor  # [M, 1], bool
    threads: Tensor  # [M, A], flat
    running: Tensor  # [M, A], bool
    need: Tensor  # [M], units for today; may be negative
    later: Tensor  # [M, S], units missing on later days, with their fractions
    middle: Tensor  # [M], bool: a factory that both buys from and sells to others
    lines: Tensor  # [M]
    days_left: Tensor  # [M], today included
    low: Tensor  # [M, 1], prices that lead to no loss against the other side
    high: Tensor
    range_low: Tensor  # [M, 1], prices that can be offered
    range_high: Tensor

    @property
    def sound(self) -> Tensor:
        """[M, 1]: whether any price is good."""
        return self.low <= self.high


class SyncRandom(Policy):
    """The policy."""

    def __init__(self, generator: torch.Generator | None) -> None:
        self.generator = generator

    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        """First offers in the first half-round, answers to all offers afterwards."""
        sides = _sides(market, rows)
        accepted = torch.zeros_like(sides.running) if market.half == 0 else _accepted(market, sides)
        to = sides.running & ~accepted
        units, price, ahead = self._offers(market, sides, to, self._asked_today(sides, to, len(rows)))
        op = torch.where(accepted, ACCEPT, torch.where(units > 0, OFFER, END))
        return Moves(op, units, price, ahead), sides.threads

    def _asked_today(self, sides: _Sides, to: Tensor, rows: int) -> Tensor:
        """[M, A]: the partners that are offered today's needs, a random share of all partners of both sides."""
        both = torch.full((rows, 2, to.shape[1]), 2.0, device=to.device)
        at = (sides.row, sides.sells[:, 0].long())
        both[at] = self._rand(to.shape) + (~to).float()  # partners of no interest come last
        both = both.flatten(1)
        count = torch.zeros(rows, dtype=torch.long, device=to.device).index_add_(0, sides.row, to.sum(1))
        share = torch.minimum(count, (TODAY_SHARE * count).long().clamp(min=1))
        limit = both.sort(1).values.gather(1, (share - 1).clamp(min=0)[:, None])
        return to & (both <= limit).view(rows, 2, -1)[at]

    def _offers(self, market: Market, sides: _Sides, to: Tensor, today: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Units, prices and days of own offers to the partners `to` [M, A]; 0 units: none."""
        most = int(market.quantity_most)
        wanted = torch.where(sides.middle, sides.lines, sides.need).clamp(min=0)
        heap = self._rand((3, len(sides.row)))
        now = split(wanted, today, most=most, heap=heap[0] < HEAP_TODAY, equal=None, generator=self.generator)
        when, amount = self._later_day(sides.later)
        is_now = now > 0
        then = split(
            amount,
            to & ~is_now & sides.sound,
            most=most,
            heap=heap[1] < HEAP_LATER,
            equal=heap[2] > 0.5,
            generator=self.generator,
        )
        if market.half == 0:
            price_now = torch.where(sides.sells, sides.range_high, sides.range_low)
        else:
            price_now = _price(sides.sells, _time(market), sides.range_low, sides.range_high, LATER_POWER, LATER_FLOOR)
        near = 1 - (when / sides.days_left).clamp(0, 1)[:, None]
        price_then = _price(sides.sells, near, sides.low, sides.high, LATER_POWER, LATER_FLOOR)
        price = torch.where(is_now, price_now, price_then)
        units = torch.where(price == price.floor(), now + then * ~is_now, 0)  # a price with a fraction is no offer
        return units, price.to(torch.int32), (when.to(torch.int32)[:, None] * ~is_now)

    def _later_day(self, later: Tensor) -> tuple[Tensor, Tensor]:
        """One of the days [M, S] on which something is missing, any of them, and what is missing, in whole units."""
        there = later > 0
        when = ((self._rand(later.shape) + 1) * there).argmax(1)
        return when, later.gather(1, when[:, None])[:, 0].to(torch.int32)

    def _rand(self, shape: tuple[int, ...]) -> Tensor:
        device = self.generator.device if self.generator is not None else None
        return torch.rand(shape, device=device, generator=self.generator)


def _time(market: Market) -> float:
    """Relative time of a negotiation in this round."""
    return (market.half // 2 + 1) / (ROUNDS + 1)


def _sides(market: Market, rows: Rows) -> _Sides:
    """Everything about the sides of rows that still negotiate."""
    signed = commitments(market, rows)
    needs = needs_of(market, rows, signed)
    later = _later_needs(market, rows, signed.supplies, signed.sales)  # [N, 2, S]
    running = rows.gather(market.threads.running) & rows.sides[:, :, None]
    row, side = running.any(2).nonzero(as_tuple=True)
    sells = side == CONSUMERS
    world, level = rows.world[row], rows.level[row]
    first, last = market.setup.first[world, level], level == market.levels - 1
    # the product that comes from the market keeps the range of the first day, all others follow their trading price
    price_in = torch.where(first, market.setup.catalogue[world, level], market.prices[world, level])
    (in_low, in_high), (out_low, out_high) = price_range(price_in), price_range(market.prices[world, level + 1])
    low = torch.where(sells, torch.maximum(out_low, in_high), in_low)
    high = torch.where(sells, out_high, torch.minimum(in_high, out_low))
    return _Sides(
        row, sells[:, None], rows.threads[row, side], running[row, side],
        torch.where(sells, needs.sales[row], needs.supplies[row]), later[row, side], ~first & ~last,
        market.setup.lines[world, level, rows.place[row]], (market.setup.n_steps - market.day)[world],
        low[:, None], high[:, None], torch.where(sells, out_low, in_low)[:, None],
        torch.where(sells, out_high, in_high)[:, None],
    )  # fmt: skip


def price_range(price: Tensor) -> tuple[Tensor, Tensor]:
    """Lowest and highest unit price that can be offered at a trading price."""
    low, high = (price * (1.0 - PRICE_RANGE)).floor().clamp(min=1), ((1.0 + PRICE_RANGE) * price).floor()
    return torch.minimum(low, high), torch.maximum(low, high)


def _price(sells: Tensor, time: float | Tensor, low: Tensor, high: Tensor, power: float, floor: float) -> Tensor:
    """What it would pay, or ask, at this time (0: as good as can be, 1: all given up); `floor` is kept when selling."""
    low = torch.where(sells, low + floor * (high - low), low)
    given = (high - low) * time**power
    wish = torch.where(sells, high - given, low + given) + 0.5
    return torch.maximum(low, torch.minimum(high, wish.floor()))


def _later_needs(market: Market, rows: Rows, supplies: Tensor, sales: Tensor) -> Tensor:
    """Units missing on later days, [N, 2, S] by side and days from today; 0 today and out of reach."""
    days = torch.arange(SLOTS, device=supplies.device)
    left = (market.setup.n_steps - market.day)[rows.world][:, None]  # days to the end, today included
    first = market.setup.first[rows.world, rows.level][:, None]
    last = (rows.level == market.levels - 1)[:, None]
    ex_in, ex_out = market.outside.in_units[rows.seat][:, None], market.outside.out_units[rows.seat][:, None]
    arrived = supplies.cumsum(1) + market.stock[rows.seat][:, None] + ex_in * days
    promised = sales.flip(1).cumsum(1).flip(1) + ex_out * (left - days)
    secured_in = torch.maximum(arrived.float(), PRODUCTIVITY * days.float())
    secured_out = torch.maximum(promised.float(), PRODUCTIVITY * (left - days).float())
    # the first level reads the range of days of a product that is never negotiated: it stays that of the first day
    reach = torch.where(first, SLOTS - 1 - market.day[rows.world][:, None], SLOTS - 1)
    missing = (secured_out - secured_in) * ((days > 0) & (days < left) & (days <= reach))
    return torch.stack([missing * ~first, -missing * ~last], 1).clamp(min=0)


def _accepted(market: Market, sides: _Sides) -> Tensor:
    """Which offers it takes, [M, A]: well priced, and less than what is needed on their day."""
    threads = market.threads
    units, price, ahead = (v.view(-1)[sides.threads] for v in (threads.units, threads.price, threads.ahead))
    need = sides.later.floor()
    least = torch.where(sides.middle, (PRODUCTIVITY * sides.lines).floor(), -torch.inf)
    need[:, 0] = torch.maximum(sides.need.float(), least)
    is_today = ahead == 0
    now = _price(sides.sells, _time(market), sides.low, sides.high, TODAY_POWER, 0.0)
    # for later days it keeps a part of the range to itself, as a buyer from the upper end
    high = torch.where(sides.sells, sides.high, sides.high - LATER_FLOOR * (sides.high - sides.low))
    when = ahead / sides.days_left[:, None]
    limit = torch.where(is_today, now, _price(sides.sells, when, sides.low, high, LATER_POWER, LATER_FLOOR))
    good = torch.where(sides.sells, price + 0.0001 >= limit, price - 0.0001 <= limit)
    good &= sides.running & sides.sound & (units > 0)
    slots, amount = ahead.long(), units.float()
    taken = torch.zeros_like(good)
    for j in range(good.shape[1]):  # each taken offer leaves less to be needed
        slot = slots[:, j : j + 1]
        taken[:, j] = good[:, j] & (amount[:, j] < need.gather(1, slot)[:, 0])
        need.scatter_add_(1, slot, -(taken[:, j] * amount[:, j])[:, None])
    return taken
