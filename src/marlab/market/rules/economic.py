"""The economic rule set of L1: caps and baseline that follow what the simulator really does.

Input stock is never used up and goods are made only for the day's sales, so a factory needs one day's production in
stock, once. Buying beyond that is pure cost; selling is bounded for each delivery day on its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from marlab.market.logs.daystate import LINES, Array, DayState
from marlab.market.rules.arrays import namespace

if TYPE_CHECKING:
    from marlab.market.rules.l1 import Bools, Caps, Issue

PRIOR_SALES = (2, 4, 6, 8, 10)
"""Exogenous quantities assumed seen before the first day, so that the distribution of sales is never empty."""
_PRIOR = tuple(float(sum(units <= sale for sale in PRIOR_SALES)) for units in range(1, LINES + 1))
"""[10] how many of them reach 1..10 units."""
LAST_BUYING_DAYS = 8
"""A middle factory stops buying this many days before the end."""
REFILL_DAYS = 12
"""With more days left than this, a middle factory counts on having stock again in three days."""
SURE_SHARE = 0.8
"""Share of the mean supply a first-level factory counts on for tomorrow."""
RAISE_ROUND = 2
"""From this round on a buyer offers the highest price instead of the lowest."""
PATIENT_ROUND = 3
"""A partner that still counters in this round is offered the large lot."""
YIELD_ROUND = 10
"""From this round on a seller offers the lowest price instead of the highest."""
LOT, LARGE_LOT = 7.0, 10.0


def sales_today(state: DayState) -> Array:
    """Units [...] to deliver today that lines can make: signed sales and the exogenous ones."""
    xp = namespace(state.day)
    return xp.minimum(state.n_lines, state.q_out[..., 0] + state.exogenous_out_quantity)


def buy_cap(state: DayState) -> Array:
    """[..., H+1]: for today one day's production less stock and purchases, plus today's sales; 0 for later days."""
    return for_today(useful(state), state)


def useful(state: DayState) -> Array:
    """Units [...] that one more purchase for today may take; negative when there are too many."""
    return state.n_lines - state.inventory_input - state.q_in.sum(-1) + sales_today(state)


def for_today(units: Array, state: DayState) -> Array:
    """Units [...] as a schedule [..., H+1] of today alone, nothing below 0."""
    xp = namespace(state.day)
    return xp.where(xp.arange(state.horizon + 1, state.day) == 0, xp.maximum(0, units)[..., None], 0.0)


def sell_cap(state: DayState) -> Array:
    """[..., H+1]: what can be made for each day less what is sold for it; 0 after the end of the game."""
    return room(ability(state), state.q_out)


def room(able: Array, sold: Array) -> Array:
    """[..., H+1] units that can still be sold, by day."""
    return namespace(able).maximum(0, able - sold)


def ability(state: DayState) -> Array:
    """[..., H+1]: units that can be made for each day, 0 after the end of the game.

    Beside today's exogenous input a first-level factory counts on most of its mean supply tomorrow and on full lines
    from the day after, and holds back today's sales until its stock is full; a middle factory counts on full lines
    from the third day on while the game is long enough to buy again.
    """
    xp = namespace(state.day)
    slots = xp.arange(state.horizon + 1, state.day)
    lines = state.n_lines[..., None]
    stock = state.inventory_input[..., None]
    supply = state.exogenous_in_quantity[..., None] * (slots == 0)
    made = xp.minimum(lines, stock + state.q_in + supply)
    left = (state.n_steps - state.day)[..., None]
    mean = SURE_SHARE * state.exogenous_in_mean[..., None]
    later = xp.where((stock >= lines) | (slots >= 2), lines, xp.minimum(lines, stock + state.q_in + mean))
    first = xp.where(slots == 0, xp.where(stock >= lines, made, 0.0), later)
    middle = xp.where((slots >= 3) & (left > REFILL_DAYS), lines, made)
    return xp.where(slots < left, xp.where(state.can_buy[..., None], middle, first), 0.0)


def need(state: DayState) -> Array:
    """Units [...] worth buying for today over all suppliers together: 0 at the first level."""
    xp = namespace(state.day)
    bought = state.q_in[..., 0]
    missing = state.n_lines - state.inventory_input + sales_today(state) - bought
    closing = state.n_steps - state.day <= LAST_BUYING_DAYS
    middle = xp.where(closing | (state.inventory_input >= state.n_lines), 0.0, xp.maximum(0, missing))
    wanted = middle if xp.surely(state.can_sell) else xp.where(state.can_sell, middle, best_purchase(state))
    return xp.where(state.can_buy, wanted, 0.0)


def best_purchase(state: DayState) -> Array:
    """Units [...] in 0..2n that earn a last-level factory most: today's sales and the worth of the stock they leave."""
    xp = namespace(state.day)
    more = xp.arange(2 * LINES + 1, state.day)  # [B] candidates
    lines, bought = state.n_lines[..., None], state.q_in[..., :1]
    stock, sales = state.inventory_input[..., None], state.exogenous_out_quantity[..., None]
    gain = _gain(state)
    storage = state.storage_cost * state.price_in
    served = xp.minimum(xp.minimum(lines, sales + state.q_out[..., :1]), stock + bought + more)
    left_over = xp.maximum(0, bought + more - served)
    after = xp.minimum(lines, stock + left_over)
    profit = (
        served * gain[..., None]
        - more * state.price_in[..., None]
        - storage[..., None] * (stock + bought + more - served)
        + _worth(state, gain, storage, after)
    )
    return xp.floats(xp.argmax(xp.where(more <= 2 * lines, profit, -math.inf)), state.day)


def _gain(state: DayState) -> Array:
    """Money [...] that one more unit served today brings: its price, less its cost, plus the penalty avoided."""
    xp = namespace(state.day)
    some = state.exogenous_out_quantity > 0
    price = xp.where(
        some, state.exogenous_out_price / xp.where(some, state.exogenous_out_quantity, 1.0), state.price_out
    )
    return price - state.production_cost + state.shortfall_penalty * state.price_out


def _worth(state: DayState, gain: Array, storage: Array, stock: Array) -> Array:
    """Value [..., B] of holding `stock` from tomorrow on: each unit serves on the days whose sales reach it."""
    xp = namespace(state.day)
    prior = xp.asarray(_PRIOR, state.day)  # [10]
    share = (state.exogenous_reach + prior) / (state.day + 1 + len(PRIOR_SALES))[..., None]
    each = share * gain[..., None] - (1 - share) * storage[..., None]
    total = xp.cat([xp.zeros_like(each[..., :1]), xp.cumsum(each)])  # [..., 11] by stock
    held = xp.gather(total, xp.ints(xp.clip(stock, 0, LINES)))
    return (state.n_steps - state.day - 1)[..., None] * held


def baseline(state: DayState, caps: Caps, selling: Bools, issue: Issue, round: Array) -> tuple[Array, Array, Array]:
    """Quantity, price and day [...] of the plain offer to one partner in a given round; quantity 0 is no offer.

    Buying: the need split over all suppliers, today, at the lowest price and from round 2 at the highest. Selling: a
    lot for the day with most room, later days first, at the highest price and from round 10 at the lowest.
    """
    xp = namespace(state.day)
    buy_price = xp.where(round < RAISE_ROUND, issue.price_min, issue.price_max)
    share = xp.ceil(need(state) / xp.maximum(1, state.n_suppliers))
    bought = xp.minimum(xp.minimum(share, caps.buy[..., 0]), caps.budget / xp.maximum(buy_price, 1))
    sell_price = xp.where(round < YIELD_ROUND, issue.price_max, issue.price_min)
    sell_day, room = _sell_day(state, caps, issue)
    sold = xp.minimum(room, xp.where(round < PATIENT_ROUND, LOT, LARGE_LOT))
    quantity, price = xp.where(selling, sold, bought), xp.where(selling, sell_price, buy_price)
    return quantity, price, xp.where(selling, sell_day, 0.0)


def _sell_day(state: DayState, caps: Caps, issue: Issue) -> tuple[Array, Array]:
    """The day to sell for and its room, each [...]: the first of those with most room, else day 1 and no room."""
    xp = namespace(state.day)
    slots = xp.arange(state.horizon + 1, state.day)
    offered = (slots >= issue.first[..., None]) & (slots <= issue.last[..., None])
    ready = state.can_buy | (state.inventory_input >= state.n_lines)  # the first level fills its stock first
    offered = offered & ((slots > 0) | ready[..., None])
    room = xp.where(offered, xp.floor(caps.sell), 0.0)
    late = xp.where(slots >= (2 + 1 * state.can_buy)[..., None], room, 0.0)
    best = xp.where(xp.any(late >= 1)[..., None], late, room)
    most = xp.max(best)
    return xp.where(most >= 1, xp.floats(xp.argmax(best), best), 1.0), most


def worth_of_stock(state: DayState, stock: Array) -> Array:
    """Value [...] of holding `stock` from this morning on to a last-level factory: it serves today's sales, too."""
    from_today = state.replace(n_steps=state.n_steps + 1)
    return _worth(from_today, _gain(state), state.storage_cost * state.price_in, stock[..., None])[..., 0]
