"""What factories know, in the words that rules and networks use: `DayState` for any rows of a batch.

`Mornings` keeps what a factory remembers of earlier days (means of its exogenous contracts) and today's numbers; it has
to be told about every morning. The same functions that play uses take it from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from marlab.market.logs.daystate import LINES, SCALARS, DayState
from marlab.market.vector.books import HORIZON
from marlab.market.vector.market import Market
from marlab.market.vector.seats import CONSUMERS, Rows, Seats
from marlab.market.vector.sync_random import price_range

Tensor = Any
"""A torch.Tensor. The rules work on numpy arrays and tensors alike; their types name the former."""


class Table(NamedTuple):
    """States of rows before they are gathered."""

    fields: Tensor  # [SCALARS, seats]
    reach: Tensor  # [seats, LINES]
    seat: Tensor  # [N]: the rows' seats
    signed: Tensor  # [2 units and money, N, 2 sides, S]


def state_of(table: Table) -> DayState:
    """The states [N]."""
    (bought, sold), (paid, received) = (values.unbind(1) for values in table.signed.unbind(0))
    fields = table.fields[:, table.seat].unbind(0)
    schedules = {"q_in": bought, "q_out": sold, "pay": paid, "receive": received}
    return DayState(**dict(zip(SCALARS, fields)), exogenous_reach=table.reach[table.seat], **schedules)


class Mornings:
    """Days seen so far, by seat; `open` after the market's `open_day`, `at` for the state of rows now."""

    def __init__(self, market: Market, dtype: torch.dtype | None = None) -> None:
        self.dtype = dtype or market.balance.dtype
        seats, device = market.setup.lines.shape, market.device
        self.inside = torch.zeros(seats, dtype=self.dtype, device=device)  # exogenous units so far
        self.outside = torch.zeros_like(self.inside)
        self.reach = torch.zeros((*seats, LINES), dtype=self.dtype, device=device)
        self._seats = Seats(market).rows(torch.ones_like(market.setup.exists))  # all of them
        self._fields = self._morning(market)  # [fields, seats] of today that do not change during a day
        self._any_bankrupt = bool(market.bankrupt.any())

    def open(self, market: Market) -> None:
        """A new day; worlds on their first day forget everything."""
        fresh = (market.day == 0)[:, None, None]
        into, out = market.outside.in_units.to(self.dtype), market.outside.out_units.to(self.dtype)
        self.inside = torch.where(fresh, into, self.inside + into)
        self.outside = torch.where(fresh, out, self.outside + out)
        steps = torch.arange(1, LINES + 1, device=market.device)
        reached = ((into + out)[..., None] >= steps).to(self.dtype)
        self.reach = torch.where(fresh[..., None], reached, self.reach + reached)
        self._fields = self._morning(market)
        self._any_bankrupt = bool(market.bankrupt.any())

    def at(self, market: Market, rows: Rows, alive: bool = False) -> DayState:
        """The states [N] of rows: the morning, with the contracts signed since.

        `alive`: without sales to bankrupt consumers, which the simulator lists although nothing is delivered.
        """
        return state_of(self.table(market, rows, alive))

    def table(self, market: Market, rows: Rows, alive: bool = False) -> Table:
        """What `state_of` makes the states of rows from."""
        market.books.sign(market.threads)
        signed = market.books.signed[(slice(None), *rows.seat)][..., market.books.order()].to(self.dtype)
        if alive and self._any_bankrupt:
            for values, gone in zip(signed, _to_bankrupt(market, rows)):
                values[:, CONSUMERS] -= gone
        seat = (rows.world * market.levels + rows.level) * market.wide + rows.place
        return Table(self._fields, self.reach.flatten(0, 2), seat, signed)

    def _morning(self, market: Market) -> Tensor:
        """The numbers [fields, seats] of all seats."""
        setup, rows, dtype = market.setup, self._seats, self.dtype
        seat = rows.seat
        before = market.books.signed[0][seat][..., market.books.slot]  # [N, 2], today's contracts before the morning
        first, last = setup.first[rows.world, rows.level], rows.level == market.levels - 1
        day, left = market.day[rows.world], setup.n_steps[rows.world] - 1 - market.day[rows.world]
        input_product = rows.level - (market.levels - setup.n_levels[rows.world])
        ex = [values[seat].to(dtype) for values in market.outside]
        need = ex[2] + before[:, 1] - before[:, 0] - ex[0] - market.stock[seat]
        seen = (day + 1).to(dtype)
        sizes = setup.exists.sum(2)
        price_in, price_out = market.prices[rows.world, rows.level], market.prices[rows.world, rows.level + 1]
        zero = torch.zeros_like(day)
        fields = {
            "day": day, "n_steps": setup.n_steps[rows.world], "n_lines": setup.lines[seat],
            "n_products": setup.n_levels[rows.world] + 1, "input_product": input_product,
            "output_product": input_product + 1,
            "n_suppliers": torch.where(first, 0, sizes[rows.world, rows.level - 1]),
            "n_consumers": torch.where(last, 0, sizes[rows.world, (rows.level + 1).clamp(max=market.levels - 1)]),
            "league_horizon": zero + HORIZON, "production_cost": setup.cost[seat],
            "balance": market.balance[seat], "initial_balance": setup.balance[seat],
            "score": market.balance[seat] / setup.balance[seat], "inventory_input": market.stock[seat],
            "inventory_output": zero, "price_in": price_in, "price_out": price_out, "storage_cost": setup.storage[seat],
            "shortfall_penalty": market.today(setup.shortfall)[seat], "disposal_cost": zero,
            "needed_supplies": torch.where(first, 0, need), "needed_sales": torch.where(last, 0, -need),
            "exogenous_in_quantity": ex[0], "exogenous_in_price": ex[0] * ex[1],
            "exogenous_out_quantity": ex[2], "exogenous_out_price": ex[2] * ex[3],
            "exogenous_in_mean": self.inside[seat] / seen, "exogenous_out_mean": self.outside[seat] / seen,
        }  # fmt: skip
        for side, price, closed in (("buy", price_in, first), ("sell", price_out, last)):
            low, high = price_range(price)
            bounds = (zero + 1, setup.quantity_max[rows.world], low, high, day, day + left.clamp(max=HORIZON))
            names = (f"{side}_{issue}_{end}" for issue in ("quantity", "price", "day") for end in ("min", "max"))
            fields |= {name: torch.where(closed, 0, bound) for name, bound in zip(names, bounds)}
        return torch.stack([fields[name].to(dtype) for name in SCALARS])


def _to_bankrupt(market: Market, rows: Rows) -> tuple[Tensor, Tensor]:
    """Units and money [N, S] of sales to bankrupt consumers, by days from today."""
    books, after = market.books, (rows.level + 1).clamp(max=market.levels - 1)
    gone = market.bankrupt[rows.world, after] & rows.sides[:, CONSUMERS, None]  # [N, A]
    sums = (values.flatten(1)[:, rows.threads[:, CONSUMERS]] * gone for values in (books.units, books.money))
    units, money = (torch.roll(value.sum(2), -books.slot, 0).T for value in sums)
    return units, money
