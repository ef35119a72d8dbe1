"""Fresh markets, as the simulator draws them, thousands at a time.

The chain of prices begins at 10 for the raw product; each level adds the dearest factory's cost and a margin. Supplies
are drawn for every day, what the market demands at the other end is what the levels can make of them, and both are
spread over factories that keep a part of their share from day to day.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.vector.configs import Configs

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
LINES = 10
RAW_PRICE = 10
COST = (1, 4)  # of the first level; level l has l + 1 times as much
MARGIN = (0.1, 0.2)
PRODUCTIVITY = (0.8, 1.0)
SUPPLY = (0.2, 1.0)  # share of the first level's lines, each day
PREDICTABILITY = (0.0, 0.7)
CASH = (1.5, 2.5)  # times what a level needs in all
PRICE_SPREAD = (0.1, 0.2)  # of exogenous contracts
SHORTFALL, SHORTFALL_SPREAD = (0.2, 1.0), (0.0, 0.1)
STORAGE = (0.01, 0.05)
UNPREDICTABLE = 0.01
"""Below this predictability factories keep nothing of their share."""


def generate(
    worlds: int,
    generator: np.random.Generator,
    *,
    levels: tuple[int, int] = (2, 4),
    factories: tuple[int, int] = (3, 8),
    days: tuple[int, int] = (50, 200),
) -> Configs:
    """Markets of random shapes; each range includes its ends."""
    for name, (low, high), least in (("levels", levels, 2), ("factories", factories, 1), ("days", days, 1)):
        if not least <= low <= high:
            raise UserError(f"{name} is {(low, high)}, expected two numbers from {least} on, the smaller one first.")
    n_levels = generator.integers(levels[0], levels[1] + 1, worlds)
    sizes = generator.integers(factories[0], factories[1] + 1, (worlds, levels[1]))
    sizes *= np.arange(levels[1]) < n_levels[:, None]
    return generate_like(n_levels, sizes, generator.integers(days[0], days[1] + 1, worlds), generator)


def generate_like(n_levels: Whole, sizes: Whole, n_steps: Whole, generator: np.random.Generator) -> Configs:
    """Markets of given shapes: levels [N], factories of each level [N, L], days [N]."""
    worlds, levels = sizes.shape
    wide, days = int(sizes.max()), int(n_steps.max())
    rows, last = np.arange(worlds), n_levels - 1
    there = np.arange(wide) < sizes[..., None]  # [N, L, A]
    used = np.arange(levels) < n_levels[:, None]  # [N, L]
    today = np.arange(days) < n_steps[:, None]  # [N, T]

    def between(ends: tuple[float, float], *shape: int) -> Array:
        return generator.uniform(*ends, shape)

    cost = generator.integers(COST[0], COST[1] + 1, there.shape) * (np.arange(levels)[:, None] + 1) * there
    supply, demand = _totals(sizes, used, between(SUPPLY, worlds, days), between(PRODUCTIVITY, worlds, levels, days))
    supply_units = _spread(supply * today, sizes[:, 0], n_steps, wide, between(PREDICTABILITY, worlds), generator)
    demand_units = _spread(demand * today, sizes[rows, last], n_steps, wide, between(PREDICTABILITY, worlds), generator)
    supplied = supply_units.sum(1)  # [N, T]
    spent, prices = _chain(supplied, cost.max(2), between(MARGIN, worlds, levels))  # [N, L, T], [N, L + 1, T]
    # the price of product p counts from day p on
    counts = (np.arange(days) >= np.arange(levels + 1)[:, None]) & today[:, None]
    catalogue = np.where(counts, prices, 0).max(2)
    needed = np.ceil((spent * today[:, None]).sum(2) / np.maximum(sizes, 1))
    balance = np.ceil(needed * between(CASH, worlds)[:, None]) * used
    spread = between(PRICE_SPREAD, worlds)[:, None, None]
    sale = prices[rows, n_levels][:, None]  # [N, 1, T]
    mean = between(SHORTFALL, *there.shape) * there
    dev = between(SHORTFALL_SPREAD, *there.shape) * mean
    daily = generator.standard_normal((*there.shape, days)) * dev[..., None] + mean[..., None]
    return Configs(
        n_levels.astype(np.int64), n_steps.astype(np.int64), sizes.astype(np.int64), LINES * there, cost,
        balance[..., None] * there, between(STORAGE, *there.shape) * there, np.abs(daily) * today[:, None, None],
        (catalogue * (np.arange(levels + 1) <= n_levels[:, None])).astype(np.int64),
        supply_units, _noisy(RAW_PRICE, spread, supply_units, generator),
        demand_units, _noisy(sale, spread, demand_units, generator),
    )  # fmt: skip


def _totals(sizes: Whole, used: NDArray[np.bool_], supply: Array, productivity: Array) -> tuple[Whole, Whole]:
    """Units [N, T] that come into the market on each day, and that it wants at the other end."""
    first = np.round(LINES * sizes[:, :1] * supply).astype(np.int64)
    made = np.round(LINES * sizes[..., None] * productivity).astype(np.int64)
    most = np.where(used[..., None], made, np.iinfo(np.int64).max).min(1)
    return first, np.minimum(first, most)


def _spread(
    totals: Whole, sizes: Whole, n_steps: Whole, wide: int, predictability: Array, generator: np.random.Generator
) -> Whole:
    """Totals [N, T] over the factories of one level: [N, A, T], roughly in the same shares every day."""
    worlds, days = totals.shape
    to = np.arange(wide) < sizes[:, None]  # [N, A]
    every = np.broadcast_to(to[:, None], (worlds, days, wide))
    mean = (0.5 + totals.sum(1) / n_steps).astype(np.int64)  # [N]
    base = _fall(mean, to, generator)
    shares = (0.5 + base[:, None] * (totals / np.maximum(mean, 1)[:, None])[..., None]).astype(np.int64)  # [N, T, A]
    changes = (0.5 + (1 - predictability)[:, None] * totals).astype(np.int64)
    shares = shares + _fall(changes, every, generator) - _fall(changes, every, generator)
    shares = _without_debts(shares.reshape(-1, wide), every.reshape(-1, wide), generator).reshape(shares.shape)
    loose = (predictability < UNPREDICTABLE)[:, None, None]
    shares = np.where(loose, _fall(totals, every, generator), shares) * (totals > 0)[..., None]
    return shares.transpose(0, 2, 1)


def _fall(units: Whole, to: NDArray[np.bool_], generator: np.random.Generator) -> Whole:
    """Units [...] that fall one by one on the places in `to` [..., A]."""
    left, places = units.copy(), to.sum(-1)
    out = np.zeros(to.shape, np.int64)
    for j in range(to.shape[-1]):
        here = to[..., j]
        chance = np.where(here, 1.0 / np.maximum(places, 1), 0.0)
        out[..., j] = generator.binomial(left, chance)
        left, places = left - out[..., j], places - here
    return out


def _without_debts(shares: Whole, to: NDArray[np.bool_], generator: np.random.Generator) -> Whole:
    """Negative shares [N, A] become 0; the others pay, units falling on them again and again until all is paid."""
    shares = shares.copy()
    for j in range(shares.shape[1]):
        owing = np.flatnonzero(shares[:, j] < 0)
        debt = -shares[owing, j]
        shares[owing, j] = 0
        while len(owing):
            others = to[owing].copy()
            others[:, j] = False
            asked = _fall(debt, others, generator)
            paid = np.where(others & (shares[owing] >= asked), asked, 0)
            shares[owing] -= paid
            debt = debt - paid.sum(1)
            owing, debt = owing[debt > 0], debt[debt > 0]
    return shares


def _chain(supplied: Whole, cost: Whole, margin: Array) -> tuple[Array, Array]:
    """What each level spends on each day [N, L, T], and the price of every product [N, L + 1, T]."""
    units = np.maximum(supplied, 1)
    paid = (RAW_PRICE * supplied).astype(np.float64)
    spent, prices = [], [np.full(supplied.shape, float(RAW_PRICE))]
    for level in range(cost.shape[1]):
        total = paid + cost[:, level, None] * supplied
        paid = np.ceil(total * (1 + margin[:, level, None]))
        spent.append(total)
        prices.append(np.ceil(paid / units))
    return np.stack(spent, 1), np.stack(prices, 1)


def _noisy(price: Array | int, spread: Array, units: Whole, generator: np.random.Generator) -> Whole:
    """Unit prices [N, A, T] of exogenous contracts; 0 where there is none."""
    drawn = 0.5 + price + generator.standard_normal(units.shape) * spread * price
    return np.where(units > 0, drawn.astype(np.int64).clip(min=0), 0)
