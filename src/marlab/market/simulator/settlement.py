"""Settlement of a Standard world from its signed contracts: what every factory earned and paid on every day.

A pure function of what the market gave (`Economy`) and of the contracts, with the simulator's own rules: input stock is
never consumed, all purchases are paid, sales are served from the highest price down as far as input, cash and lines
reach. It reproduces the simulator's balances to rounding, so a score can be taken apart exactly.

Letters: F factories, T days, P products. Product l is the input of level l, product l + 1 its output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.worldlog import NONE, Table

Array = NDArray[np.float64]
PRICE_MEMORY, FIRST_WEIGHT = 0.9, 50.0
"""A day keeps 90 % of the weight of earlier trades; before the first day there are 50 units at the catalogue price."""
MONEY = ("revenue", "supply", "purchases", "production", "storage", "penalty")
"""The parts of a balance: the first is earned, the others are paid."""
Lots = Sequence[tuple[float, float]]
"""(unit price, quantity) of contracts."""


@dataclass(frozen=True)
class Economy:
    """What the market gave to its factories before anybody traded."""

    level: NDArray[np.int64]  # [F], also the factory's input product
    lines: NDArray[np.int64]  # [F], units that can be produced in a day
    cost: Array  # [F], money per unit produced
    balance: Array  # [F], opening balance
    storage: Array  # [F, T], share of the input's trading price for each unit left on a day
    shortfall: Array  # [F, T], share of the output's trading price for each unit not delivered on a day
    catalogue: Array  # [P], prices before the first trade

    @property
    def n_steps(self) -> int:
        """Days."""
        return self.storage.shape[1]

    @property
    def last_level(self) -> int:
        """The level that sells to the market."""
        return len(self.catalogue) - 2


class Day(NamedTuple):
    """One factory on one day: money in the first six fields, units in the others."""

    revenue: float
    supply: float  # the bill of exogenous supplies
    purchases: float  # negotiated
    production: float
    storage: float
    penalty: float
    produced: float  # also: sold
    shortfall: float
    stock: float  # after the day
    bought: float  # negotiated

    @property
    def profit(self) -> float:
        """What the balance grows by."""
        paid = self.supply + self.purchases + self.production + self.storage + self.penalty
        return self.revenue - paid


@dataclass(frozen=True)
class Settlement:
    """A settled world."""

    parts: dict[str, Array]  # every field of Day, each [T, F]
    balance: Array  # [T + 1, F], the morning of each day and the end
    prices: Array  # [T + 1, P], trading prices in the morning
    bankrupt_on: NDArray[np.int64]  # [F], the day after whose settlement the balance was negative first; -1: never
    executed: NDArray[np.bool_]  # [contracts], False for those that a bankruptcy ended

    def shares(self, factory: int) -> dict[str, float]:
        """Revenue, supply bill, purchases, production, storage and penalty as shares of the opening balance."""
        return {name: float(self.parts[name][:, factory].sum() / self.balance[0, factory]) for name in MONEY}


def economy_of(world: Any, names: Sequence[str]) -> Economy:
    """Read it from a world of the simulator; `names` are the ids of the factories in the order wanted."""
    profiles = [world.agent_profiles[name] for name in names]
    given = (world.initial_balances, world.agent_storage_cost, world.agent_shortfall_penalty)
    balance, storage, shortfall = (np.array([n[name] for name in names], dtype=np.float64) for n in given)
    return Economy(
        level=np.array([p.input_product for p in profiles], dtype=np.int64),
        lines=np.array([p.n_lines for p in profiles], dtype=np.int64),
        cost=np.array([p.cost for p in profiles], dtype=np.float64),
        balance=balance,
        storage=storage,
        shortfall=shortfall,
        catalogue=np.array(world.catalog_prices, dtype=np.float64),
    )


def settle(economy: Economy, contracts: Table) -> Settlement:
    """Settle all days. `contracts` as in the logs: a seller or buyer of -1 is the market."""
    days, factories = economy.n_steps, len(economy.level)
    parts = {name: np.zeros((days, factories)) for name in Day._fields}
    balance = np.zeros((days + 1, factories))
    balance[0] = economy.balance
    prices = np.zeros((days + 1, len(economy.catalogue)))
    prices[0] = economy.catalogue
    weight = np.full(len(economy.catalogue), FIRST_WEIGHT)
    bankrupt_on = np.full(factories, -1)
    executed = np.zeros(len(contracts["seller"]), dtype=bool)
    stock = np.zeros(factories)
    for day in range(days):
        due = np.flatnonzero((contracts["delivery"] == day) & (contracts["quantity"] > 0))
        due = due[~_nullified(contracts, due, bankrupt_on >= 0)]
        executed[due] = True
        traded = {name: contracts[name][due] for name in ("seller", "buyer", "product", "quantity", "price")}
        for f in range(factories):
            today = _settle_one(economy, f, day, traded, stock[f], balance[day, f], prices[day])
            for name, value in zip(Day._fields, today):
                parts[name][day, f] = value
            stock[f] = today.stock
            balance[day + 1, f] = balance[day, f] + today.profit
            if balance[day + 1, f] < 0 and bankrupt_on[f] < 0:
                bankrupt_on[f] = day
        prices[day + 1], weight = _new_prices(prices[day], weight, traded)
    return Settlement(parts, balance, prices, bankrupt_on, executed)


def _nullified(contracts: Table, due: NDArray[Any], bankrupt: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Negotiated contracts of a factory that went bankrupt on an earlier day; exogenous ones keep coming."""
    seller, buyer = contracts["seller"][due], contracts["buyer"][due]
    return (seller != NONE) & (buyer != NONE) & (bankrupt[seller] | bankrupt[buyer])


def _settle_one(
    economy: Economy, factory: int, day: int, traded: Table, stock: float, balance: float, prices: Array
) -> Day:
    buying, selling = traded["buyer"] == factory, traded["seller"] == factory
    level = int(economy.level[factory])
    due = Due(
        purchases=_lots(traded, buying & (traded["seller"] != NONE)),
        supply=_lots(traded, buying & (traded["seller"] == NONE)),
        sales=_lots(traded, selling & (traded["buyer"] != NONE)),
        demand=_lots(traded, selling & (traded["buyer"] == NONE)),
    )
    rates = Rates(
        lines=int(economy.lines[factory]),
        cost=float(economy.cost[factory]),
        storage=float(economy.storage[factory, day] * prices[level]),
        penalty=float(economy.shortfall[factory, day] * prices[level + 1]),
    )
    return settle_day(due, stock, balance, rates)


def _lots(traded: Table, rows: NDArray[np.bool_]) -> Lots:
    """(unit price, quantity) of each contract, in the order of signing."""
    if not rows.any():
        return []
    return list(zip(traded["price"][rows].astype(float).tolist(), traded["quantity"][rows].tolist()))


class Due(NamedTuple):
    """Contracts to be delivered today, each kind as lots (unit price, quantity)."""

    purchases: Lots
    supply: Lots  # exogenous
    sales: Lots
    demand: Lots  # exogenous


class Rates(NamedTuple):
    """What a factory can do in a day, and what units cost it."""

    lines: int  # units that it can produce
    cost: float  # of producing a unit
    storage: float  # of a unit left over
    penalty: float  # of a unit not delivered


def settle_day(due: Due, stock: float, balance: float, rates: Rates) -> Day:
    """One factory and day."""
    bill, supplied = _sum(due.supply)
    earned, demanded = _sum(due.demand)
    # The simulator treats stock and exogenous supply as one lot, so that stock makes the supply look cheaper.
    own = stock + supplied
    inputs = [*due.purchases, (bill / own if own else 0.0, own)]
    outputs = [*due.sales, (earned / demanded if demanded else 0.0, demanded)]
    affordable = _affordable(sorted(inputs, key=lambda lot: lot[0]), balance, rates.cost)
    owed = sum(quantity for _, quantity in outputs)
    produced = min(affordable, rates.lines, owed)
    paid, bought = _sum(due.purchases)
    left = own + bought - produced
    return Day(
        revenue=_served(outputs, produced), supply=bill, purchases=paid, production=rates.cost * produced,
        storage=rates.storage * left, penalty=rates.penalty * (owed - produced), produced=produced,
        shortfall=owed - produced, stock=stock + max(0.0, supplied + bought - produced), bought=bought,
    )  # fmt: skip


def _sum(lots: Lots) -> tuple[float, float]:
    """Money and units."""
    return sum(price * quantity for price, quantity in lots), sum(quantity for _, quantity in lots)


def _affordable(inputs: Lots, balance: float, cost: float) -> float:
    """Units that the morning's cash pays for, with their production, from the cheapest lot on."""
    if balance < 0:
        return 0.0
    paid = units = 0.0
    for price, quantity in inputs:
        if paid + quantity * (price + cost) > balance:
            return units + (balance - paid) // (price + cost)
        paid += quantity * price
        units += quantity
    return units


def _served(outputs: Lots, produced: float) -> float:
    """Revenue of the units that can be delivered, from the highest price down."""
    revenue, left = 0.0, produced
    for price, quantity in sorted(outputs, key=lambda lot: -lot[0]):
        revenue += price * min(quantity, left)
        left -= min(quantity, left)
    return revenue


def _new_prices(prices: Array, weight: Array, traded: Table) -> tuple[Array, Array]:
    """Trading prices after a day: a mean that forgets, untouched where nothing was delivered."""
    units = np.bincount(traded["product"], weights=traded["quantity"], minlength=len(prices))
    value = np.bincount(
        traded["product"], weights=traded["quantity"].astype(float) * traded["price"], minlength=len(prices)
    )
    later = PRICE_MEMORY * weight + units
    moved = units > 0
    return np.where(moved, (PRICE_MEMORY * weight * prices + value) / later, prices), np.where(moved, later, weight)
