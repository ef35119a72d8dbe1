"""The evening of a day: deliveries, production, payment, stock, trading prices, bankruptcy.

The rules are the simulator's: all purchases are paid; input stock is offered to production every day and never
consumed; production is limited by cash, lines and what is owed; sales are served from the highest price down. Orders
matter only where cash or goods do not suffice, so only those rows are sorted.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from marlab.market.vector.books import PRICE_SHIFT, RANK_BITS, RANK_SHIFT, UNITS_MASK
from marlab.market.vector.setup import by_side

PRICE_MEMORY, FIRST_WEIGHT = 0.9, 50.0
"""A day keeps 90 % of the weight of earlier trades; before the first day there are 50 units at the catalogue price."""


class Rates(NamedTuple):
    """What a factory can do today and what it is charged, [B, L, A]."""

    lines: Tensor
    cost: Tensor  # of producing a unit
    storage: Tensor  # of a unit left
    penalty: Tensor  # of a unit not delivered


class Outside(NamedTuple):
    """Today's exogenous contracts, [B, L, A] each; prices are of a unit."""

    in_units: Tensor
    in_price: Tensor
    out_units: Tensor
    out_price: Tensor


class Evening(NamedTuple):
    """One settled day, [B, L, A] each: money in the first six fields, units in the others."""

    revenue: Tensor
    supply: Tensor  # the bill of exogenous supplies
    purchases: Tensor  # negotiated
    production: Tensor
    storage: Tensor
    penalty: Tensor
    produced: Tensor
    shortfall: Tensor
    arrived: Tensor  # exogenous and negotiated inputs

    @property
    def profit(self) -> Tensor:
        """What the balance grows by."""
        paid = self.supply + self.purchases + self.production + self.storage + self.penalty
        return self.revenue - paid


class Traded(NamedTuple):
    """What is delivered today in every thread [B, P, C, R]."""

    units: Tensor
    money: Tensor
    lots: Tensor  # [B, P, C, R, S], one packed contract per signing day
    age: Tensor  # [S], 0 for the oldest


def settle(traded: Traded, outside: Outside, rates: Rates, balance: Tensor, stock: Tensor) -> Evening:
    """One day of all factories."""
    dtype, levels = balance.dtype, balance.shape[1]
    bought, spent = _per_buyer(traded.units, levels), _per_buyer(traded.money, levels).to(dtype)
    sold, earned = _per_seller(traded.units, levels), _per_seller(traded.money, levels).to(dtype)
    bill = (outside.in_units * outside.in_price).to(dtype)
    own = stock + outside.in_units
    affordable = _affordable(traded, own, bill, bought, spent, rates.cost, balance)
    owed = sold + outside.out_units
    produced = torch.minimum(torch.minimum(affordable, rates.lines), owed)
    short = owed - produced
    # the last level's only lot is the market's demand, which is served as far as production goes
    demand = (outside.out_price * torch.minimum(produced, outside.out_units)).to(dtype)
    served = _served(traded, produced, earned, (short > 0) & (sold > 0))
    left = (own + bought - produced).to(dtype)
    return Evening(
        served + demand, bill, spent, rates.cost * produced, rates.storage * left, rates.penalty * short, produced,
        short, outside.in_units + bought,
    )  # fmt: skip


def new_prices(prices: Tensor, weight: Tensor, units: Tensor, money: Tensor) -> tuple[Tensor, Tensor]:
    """Trading prices [B, L + 1] after a day: a mean that forgets, untouched where nothing was delivered."""
    moved = units > 0
    real = money / units.clamp(min=1)
    later = weight * PRICE_MEMORY + units
    # in the simulator's order of operations: a price that stays on a whole number must do so here too
    mean = (prices * weight * PRICE_MEMORY + real * units) / later.clamp(min=1e-30)
    return torch.where(moved, mean, prices), torch.where(moved, later, weight)


def _per_buyer(threads: Tensor, levels: int) -> Tensor:
    """Sums over partners [B, L, A] of what the factories of each level buy; nothing at the first index."""
    sums = [by_side(threads[:, k], k, levels)[1].sum(2, dtype=threads.dtype) for k in range(levels - 1)]
    return torch.stack([torch.zeros_like(sums[0]), *sums], 1)


def _per_seller(threads: Tensor, levels: int) -> Tensor:
    """The same of what they sell; nothing at the last index."""
    sums = [by_side(threads[:, k], k, levels)[0].sum(2, dtype=threads.dtype) for k in range(levels - 1)]
    return torch.stack([*sums, torch.zeros_like(sums[0])], 1)


def _affordable(
    traded: Traded, own: Tensor, bill: Tensor, bought: Tensor, spent: Tensor, cost: Tensor, balance: Tensor
) -> Tensor:
    """Units [B, L, A] that the morning's cash pays for, with their production, from the cheapest lot on.

    Stock and exogenous supply are one lot, the cheapest: only the first level pays for it, and it buys nothing else.
    """
    total = own + bought
    enough = bill + spent + cost * total <= balance
    unit = bill / own.clamp(min=1) + cost
    some = torch.where(unit > 0, _floor_div(balance, unit), total.to(unit.dtype))
    first_stops = bill + cost * own > balance
    units = torch.where(first_stops, torch.minimum(some, total.to(some.dtype)).to(total.dtype), total)
    units = torch.where(enough, total, units)
    levels = balance.shape[1]
    for k in range(levels - 1):
        unsure = ~enough[:, k + 1] & ~first_stops[:, k + 1] & (bought[:, k + 1] > 0) & (balance[:, k + 1] >= 0)
        rows = unsure.nonzero(as_tuple=True)
        if not len(rows[0]):
            continue
        lots = by_side(traded.lots[:, k], k, levels)[1][rows].flatten(1)  # [rows, A * S]
        age = traded.age.repeat(traded.lots.shape[2])
        seat = (rows[0], torch.full_like(rows[0], k + 1), rows[1])
        units[seat] = _walk(lots, age, own[seat], bill[seat], cost[seat], balance[seat])
    return torch.where(balance < 0, 0, units)


def _walk(lots: Tensor, age: Tensor, own: Tensor, bill: Tensor, cost: Tensor, balance: Tensor) -> Tensor:
    """Units that can be paid when lots [N, K] are taken from the cheapest on, the oldest first among equals."""
    rank = lots & ((1 << (RANK_BITS + RANK_SHIFT)) - 1)
    keys = (lots.long() >> PRICE_SHIFT << 24) | (age.long() << 20) | rank
    keys = keys.sort(1).values
    units, price = keys & UNITS_MASK, keys >> 24
    money = units * price
    before = bill[:, None] + money.cumsum(1) - money
    stops = before + units * (price + cost[:, None]) > balance[:, None]
    at = stops.to(torch.int8).argmax(1, keepdim=True)
    here = (units.cumsum(1) - units).gather(1, at)[:, 0] + own
    unit = price.gather(1, at)[:, 0] + cost
    some = _floor_div(balance - before.gather(1, at)[:, 0], unit).to(here.dtype)
    all_of_them = units.sum(1) + own
    return torch.where(stops.any(1), here + some, all_of_them).to(own.dtype)


def _floor_div(money: Tensor, price: Tensor) -> Tensor:
    """As Python's `//` does it: a quotient that rounds up to a whole number does not count as one."""
    return torch.div(money, price.clamp(min=1e-30), rounding_mode="floor")


def _served(traded: Traded, produced: Tensor, earned: Tensor, short: Tensor) -> Tensor:
    """Revenue [B, L, A] of negotiated sales: all of it, or the dearest lots as far as production goes."""
    revenue = earned.clone()
    levels = produced.shape[1]
    for k in range(levels - 1):
        rows = short[:, k].nonzero(as_tuple=True)
        if not len(rows[0]):
            continue
        lots = by_side(traded.lots[:, k], k, levels)[0][rows].flatten(1)
        lots = lots.sort(1, descending=True).values
        units, price = lots & UNITS_MASK, lots >> PRICE_SHIFT
        seat = (rows[0], torch.full_like(rows[0], k), rows[1])
        left = produced[seat][:, None] - (units.cumsum(1, dtype=units.dtype) - units)
        taken = torch.minimum(left.clamp(min=0), units)
        revenue[seat] = (taken * price).sum(1).to(revenue.dtype)
    return revenue
