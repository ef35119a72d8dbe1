"""L2's goal: 16 numbers = 4 delivery buckets x (Q_buy, P_buy, Q_sell, P_sell), and its v2 labels from a day's deals.

Batched: a goal is [..., 16]; deals and offers of many days come flat, each with the row of its day.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array, DayState
from marlab.market.rules import l1
from marlab.market.rules.arrays import namespace

BUCKETS = 4
GOAL_SIZE = 4 * BUCKETS
BOUNDARIES = (2.5, 7.5, 14.5)
"""Buckets hold delivery in 0-2, 3-7, 8-14 and 15 or more days."""
SPREAD = 1.0 / (np.array([1, 5, 11, 27.5]) + 1)
SPREAD = SPREAD / SPREAD.sum()
"""rho [4]: how an open need is spread over the buckets, the nearest first."""
GAP = 0.6
"""Share of an open need that a label asks for."""
IS_QUANTITY = np.arange(GOAL_SIZE) % 2 == 0
IS_SELLING = np.arange(GOAL_SIZE) // 2 % 2 == 1
BUY, SELL = 0, 1
"""The two sides, as indices."""


class Trades(NamedTuple):
    """Deals or offers of many days, flat [M]."""

    row: NDArray[np.integer]  # which day of the batch
    side: NDArray[np.integer]  # BUY or SELL
    delta: Array  # days to delivery
    quantity: Array
    price: Array  # per unit
    weight: Array  # 1 for deals; of offers: `offers.weights`


def bucket_of(delta: Array) -> NDArray[np.intp]:
    """The bucket [...] of a delivery in `delta` days."""
    first, second, third = BOUNDARIES
    return 1 * (delta > first) + 1 * (delta > second) + 1 * (delta > third)


def soft_buckets(delta: Array) -> Array:
    """Shares [..., 4] of the buckets in a delivery: within a day of a boundary both neighbours have a share."""
    left = np.clip((np.array(BOUNDARIES) + 1 - np.asarray(delta)[..., None]) / 2, 0, 1)  # share before each boundary
    edges = np.zeros((*left.shape[:-1], 1))
    return np.diff(np.concatenate([edges, left, edges + 1], -1), axis=-1)


def part(goal: Array, selling: NDArray[np.bool_] | bool, bucket: NDArray[np.integer]) -> tuple[Array, Array]:
    """Quantity and price [...] that a goal [..., 16] sets for one side and bucket."""
    xp = namespace(goal)
    first = 4 * bucket + 2 * xp.asarray(selling, goal)
    return xp.take(goal, first), xp.take(goal, first + 1)


def mask_goal(goal: Array, roles: Array) -> Array:
    """A goal [..., 16] that can be used: nothing negative, zeros on sides without trade (roles [..., 2])."""
    xp = namespace(goal)
    allowed = xp.where(xp.asarray(IS_SELLING, goal), roles[..., 1:], roles[..., :1])
    return xp.maximum(goal, 0) * allowed


def roles(state: DayState) -> Array:
    """[..., 2]: can buy, can sell (multi-hot)."""
    xp = namespace(state.day)
    return xp.stack([xp.floats(side, state.day) for side in (state.can_buy, state.can_sell)])


def goal_labels(state: DayState, deals: Trades, offers: Trades) -> Array:
    """v2 goals [N, 16] of N days from the deals signed and the offers on the table that day."""
    days = len(state)
    signed = _Sums.of(days, deals)
    active = _Sums.of(days, offers)
    dealt, wished = signed.quantity > 0, active.quantity > 0  # [N, 2, 4]
    deal_price = signed.mean_price()
    wish_price = active.mean_price()
    wish_price = np.where(dealt, wish_price, (wish_price + _medians(days, offers)) / 2)

    needs = np.maximum(0, np.stack([state.needed_supplies, state.needed_sales], -1))  # [N, 2]
    gap = GAP * needs[..., None] * SPREAD
    undecided = ~dealt.any(-1, keepdims=True) & wished.any(-1, keepdims=True)
    quantity = signed.quantity + gap + 0.15 * active.quantity * undecided

    spot = np.stack([state.price_in, state.price_out], -1)[..., None]
    plain = spot * np.array([0.95, 1.05])[:, None]
    both, deal = 0.65 * deal_price + 0.25 * wish_price + 0.10 * spot, 0.775 * deal_price + 0.225 * spot
    price = np.select([dealt & wished, dealt, wished], [both, deal, 0.575 * wish_price + 0.425 * spot], plain)
    goal = np.stack([quantity, price], -1).transpose(0, 2, 1, 3).reshape(days, GOAL_SIZE)  # bucket, side, (Q, P)
    return mask_goal(goal, roles(state))


class _Sums(NamedTuple):
    """Quantity and money by day, side and bucket: each [N, 2, 4]."""

    quantity: Array
    money: Array

    @classmethod
    def of(cls, days: int, trades: Trades) -> _Sums:
        cell, amount, price = _spread(trades)

        def summed(values: Array) -> Array:
            return np.bincount(cell, values, days * 2 * BUCKETS).astype(np.float64).reshape(days, 2, BUCKETS)

        return cls(summed(amount), summed(amount * price))

    def mean_price(self) -> Array:
        return self.money / np.where(self.quantity > 0, self.quantity, 1)


def _spread(trades: Trades) -> tuple[NDArray[np.intp], Array, Array]:
    """Trades split over their buckets: cell (day, side, bucket), weighted quantity and price, each flat."""
    good = (trades.quantity > 0) & (trades.price > 0)
    row, side, delta, quantity, price, weight = (column[good] for column in trades)
    share = soft_buckets(np.maximum(0, delta))  # [M, 4]
    cell = (row * 2 + side)[:, None] * BUCKETS + np.arange(BUCKETS)
    used = share > 0
    amount = share * (weight * quantity)[:, None]
    prices = np.broadcast_to(price[:, None], share.shape)
    return cell[used].astype(np.intp), amount[used], prices[used]


def _medians(days: int, trades: Trades) -> Array:
    """Weighted median price by day, side and bucket [N, 2, 4]; 0 where there is no offer."""
    cell, amount, price = _spread(trades)
    order = np.lexsort((price, cell))
    cell, amount, price = cell[order], amount[order], price[order]
    size = days * 2 * BUCKETS
    median = np.zeros(size)
    if len(cell):
        total = np.bincount(cell, amount, size)
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        running = np.cumsum(amount)
        before = np.repeat((running - amount)[starts], np.diff(np.append(starts, len(cell))))
        past_half = running - before >= total[cell] / 2 - 1e-12
        # the first offer of each cell at which half of the weight is reached
        hit = np.flatnonzero(past_half)
        first = hit[np.flatnonzero(np.diff(cell[hit], prepend=-1))]
        median[cell[first]] = price[first]
    return median.reshape(days, 2, BUCKETS)


def heuristic_goal(state: DayState) -> Array:
    """A goal [..., 16] by rule of thumb, for a cold start: fill the lines, sell what can be made, near days first."""
    xp = namespace(state.day)
    progress = state.day / xp.maximum(state.n_steps, 1)
    late, early = 1.0 * (progress > 0.8), 1.0 * (progress < 0.2)
    buy = xp.maximum(0, state.n_lines - state.inventory_input) * (1 - 0.5 * late + 0.5 * early)
    sell = l1.sellable(state) * (1 + late - 0.5 * early)
    near = 1 - 0.2 * xp.arange(BUCKETS, state.day)  # [4]
    buy_price, sell_price = state.price_in[..., None] * (1 - 0.1 * near), state.price_out[..., None] * (1 + 0.1 * near)
    goal = xp.stack([buy[..., None] * near / 4, buy_price, sell[..., None] * near / 4, sell_price])
    return mask_goal(goal.reshape(*goal.shape[:-2], GOAL_SIZE), roles(state))


def economic_goal(state: DayState, caps: l1.Caps) -> Array:
    """A goal [..., 16] by the economics of the simulator: buy today's need at once, sell the room of every day.

    `caps` are those of the economic rules; days outside the league's horizon hold nothing.
    """
    xp = namespace(state.day)
    slots = xp.arange(state.horizon + 1, state.day)
    last = xp.minimum(state.league_horizon, state.n_steps - 1 - state.day)[..., None]
    in_bucket = xp.floats(bucket_of(slots)[:, None] == xp.arange(BUCKETS, state.day), state.day)  # [H+1, 4]
    buy = xp.where(slots <= last, caps.buy, 0.0) @ in_bucket
    sell = xp.where(slots <= last, caps.sell, 0.0) @ in_bucket
    bought, sold = l1.issue_of(state, False), l1.issue_of(state, True)
    goal = xp.stack([buy, bought.price_max[..., None], sell, sold.price_max[..., None]])
    return mask_goal(goal.reshape(*goal.shape[:-2], GOAL_SIZE), roles(state))
