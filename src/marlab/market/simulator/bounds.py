"""What a factory could have scored: without any trade, with all deliveries of its product, and without limits.

    no trade     no contract but the exogenous ones
    captured     it delivers, up to its lines, every unit of its output that anybody delivered on that day, at trading
                 prices, after holding back supplies for up to four days or buying a stock on the first day; at the last
                 level, where the market is the only customer, the same as `mean price`
    mean price   perfect foresight of exogenous contracts and prices and partners without limits, at trading prices
    issue        the same at the best prices that negotiations allow: buying at the lowest, selling at the highest

Captured is no hard limit (offers that nobody made may create demand), the last two are. Cash is not limited: an optimal
factory never lays out more than about twenty units. Prices are those of the world that was played.

Letters: T days, N largest stock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.worldlog import NONE, Table
from marlab.market.simulator.settlement import Economy, Settlement

Array = NDArray[np.float64]
MOST_HELD = 4
"""Days for which the captured bound lets a first-level factory hold back its supplies."""
ISSUE_WIDTH = 0.1
"""Negotiated prices lie within 10 % of the trading price."""


class Bounds(NamedTuple):
    """Scores: shares of the opening balance."""

    no_trade: float
    captured: float
    mean_price: float
    issue: float


@dataclass(frozen=True)
class Foresight:
    """A factory that knows its whole game. Quantities in units per day, prices in money per unit; all arrays [T]."""

    balance: float
    lines: int
    cost: float
    supply: NDArray[np.int64]  # exogenous
    bill: Array  # money for the day's whole supply
    demand: NDArray[np.int64]  # exogenous
    demand_price: Array
    delivered: NDArray[np.int64]  # units of the output that anybody delivered under negotiated contracts
    storage: Array  # per unit left
    penalty: Array  # per unit not delivered
    buy_price: Array
    sell_price: Array
    buys: bool
    sells: bool

    @property
    def days(self) -> int:
        """Length of the game."""
        return len(self.supply)


def factory_bounds(economy: Economy, contracts: Table, settled: Settlement, factory: int) -> Bounds:
    """The four bounds of one factory of a played world."""
    known = foresight_of(economy, contracts, settled, factory)
    mean_price = best_score(known)
    low, high = np.floor(known.buy_price * (1 - ISSUE_WIDTH)), np.floor(known.sell_price * (1 + ISSUE_WIDTH))
    issue = best_score(replace(known, buy_price=np.maximum(1.0, low), sell_price=high))
    captured = mean_price if not known.sells else captured_score(known)
    return Bounds(no_trade_score(known), captured, mean_price, issue)


def foresight_of(economy: Economy, contracts: Table, settled: Settlement, factory: int) -> Foresight:
    """Everything about a factory's game that its own trades do not decide."""
    days, level = economy.n_steps, int(economy.level[factory])
    price, quantity = contracts["price"].astype(float), contracts["quantity"].astype(np.int64)
    buyer, seller = contracts["buyer"], contracts["seller"]

    def per_day(rows: NDArray[np.bool_], weights: Array | NDArray[np.int64]) -> Array:
        return np.bincount(contracts["delivery"][rows], weights=weights[rows], minlength=days)[:days].astype(float)

    supplied = (buyer == factory) & (seller == NONE)
    demanded = (seller == factory) & (buyer == NONE)
    traded = (contracts["product"] == level + 1) & (buyer != NONE) & (seller != NONE) & settled.executed
    demand = per_day(demanded, quantity)
    earned = per_day(demanded, quantity * price)
    buy_price, sell_price = settled.prices[:-1, level], settled.prices[:-1, level + 1]
    return Foresight(
        balance=float(economy.balance[factory]), lines=int(economy.lines[factory]), cost=float(economy.cost[factory]),
        supply=per_day(supplied, quantity).astype(np.int64), bill=per_day(supplied, quantity * price),
        demand=demand.astype(np.int64), delivered=per_day(traded, quantity).astype(np.int64),
        demand_price=np.divide(earned, demand, out=np.zeros(days), where=demand > 0),
        storage=economy.storage[factory] * buy_price, penalty=economy.shortfall[factory] * sell_price,
        buy_price=buy_price, sell_price=sell_price, buys=level > 0, sells=level < economy.last_level,
    )  # fmt: skip


def no_trade_score(known: Foresight) -> float:
    """Supplies are paid and pile up, demand is not met."""
    left = np.cumsum(known.supply)
    lost = known.bill + known.storage * left + known.penalty * known.demand
    return 1.0 - float(lost.sum()) / known.balance


def best_score(known: Foresight) -> float:
    """The optimum over all purchases and sales, each for the same day, by dynamic programming over the stock."""
    largest = int(known.supply.sum()) + (2 * known.lines if known.buys else 0)
    stock = np.arange(largest + 1)
    value = np.zeros(largest + 1)
    for day in reversed(range(known.days)):
        value = _best_of_day(known, day, stock, value)
    return 1.0 + float(value[0] - known.bill.sum()) / known.balance


def _best_of_day(known: Foresight, day: int, stock: NDArray[np.int64], later: Array) -> Array:
    """Value [N + 1] of every stock in the morning, given that of the next morning."""
    bought = np.arange(2 * known.lines + 1 if known.buys else 1)[:, None, None]
    sold = np.arange(known.lines + 1 if known.sells else 1)[None, :, None]
    arriving = known.supply[day] + bought
    owed = known.demand[day] + sold
    produced = np.minimum(np.minimum(stock + arriving, known.lines), owed)
    tomorrow = stock + np.maximum(0, arriving - produced)
    served_market = np.minimum(produced, known.demand[day])
    money = (
        served_market * known.demand_price[day]
        + (produced - served_market) * known.sell_price[day]
        - bought * known.buy_price[day]
        - known.cost * produced
        - known.storage[day] * (stock + arriving - produced)
        - known.penalty[day] * (owed - produced)
    )
    reachable = tomorrow < len(stock)
    total = np.where(reachable, money + later[np.minimum(tomorrow, len(stock) - 1)], -np.inf)
    return total.max(axis=(0, 1))


def captured_score(known: Foresight) -> float:
    """The best of the plain plans that serve what was delivered by anybody; trading nothing is one of them."""
    return max(no_trade_score(known), *(_follow(known, first, held) for first, held in _plans(known)))


def _plans(known: Foresight) -> Iterator[tuple[int, int]]:
    """(units bought on the first day, days without sales)."""
    if not known.buys:
        yield from ((0, held) for held in range(MOST_HELD + 1))
        return
    yield known.lines, 1
    yield known.lines + min(known.lines, int(known.delivered[0])), 0


def _follow(known: Foresight, first: int, held: int) -> float:
    """The score of one plan."""
    stock, money = 0, 0.0
    for day in range(known.days):
        bought = first if day == 0 else 0
        arriving = int(known.supply[day]) + bought
        wanted = int(known.delivered[day]) if day >= held else 0
        produced = min(stock + arriving, known.lines, wanted)
        money += produced * (known.sell_price[day] - known.cost) - bought * known.buy_price[day] - known.bill[day]
        money -= known.storage[day] * (stock + arriving - produced)
        stock += max(0, arriving - produced)
    return 1.0 + float(money) / known.balance
