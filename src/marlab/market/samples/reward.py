"""What a day earned, for learning from good days: the change of cash and of what stock and signed contracts are worth.

Cash alone would call every purchase a loss and show a sale only on the day of its delivery. The worth of a morning is a
potential: what it adds on one day it takes back on the days when it becomes cash, and after the game it is zero. So the
rewards of a whole game add up to what the game earned, less the worth of its first morning; they only come earlier.
"""

from __future__ import annotations

import numpy as np

from marlab.market.logs.daystate import Array, DayState
from marlab.market.logs.worldlog import NONE, AgentLog
from marlab.market.rules import economic

RECENT = 10
"""Days over which a middle factory's sales are averaged."""
USUAL_SALES, USUAL_DAYS = 2.0, 5
"""Units a day that a middle factory sells usually, and for how many days that counts before the first ones are seen."""


def rewards(log: AgentLog) -> Array:
    """[D] what each day earned; nan where the log does not tell the balance after it.

    A first-level factory's supply is not its choice, so its bill is left out: it only hides what the day's deals did.
    """
    days = log.days
    after = np.append(days.balance[1:], log.final_balance)
    value = worth(days, sales_a_day(log))
    value_after = np.append(value[1:], 0.0)
    follows = np.append(np.diff(days.day) == 1, days.day[-1:] == days.n_steps[-1:] - 1)
    bill = np.where(days.can_buy, 0.0, days.exogenous_in_price)
    return np.where(follows, after - days.balance + bill + value_after - value, np.nan)


def worth(days: DayState, sold: Array) -> Array:
    """[D] what stock and signed contracts of a morning are worth; `sold` [D]: units a day that are sold lately.

    Goods under way count as stock. One day's production (of `n_lines`) is useful for the rest of the game, because
    the simulator never uses it up: at the last level by the chance that the day's sales reach each unit, at a middle
    level by what is sold lately; at the first level supply comes by itself. All above it costs storage until the end.
    """
    left = days.n_steps - days.day
    stock = days.inventory_input + days.q_in.sum(-1)
    useful = np.minimum(stock, days.n_lines)
    margin = days.price_out - days.production_cost
    last = economic.worth_of_stock(days, np.floor(useful))
    middle = left * margin * sold * useful / np.maximum(days.n_lines, 1)
    held = np.where(days.can_sell, np.where(days.can_buy, middle, 0.0), last)
    storage = days.storage_cost * days.price_in * left * (stock - useful)
    return held - storage + signed_worth(days)


def signed_worth(days: DayState) -> Array:
    """[D] money that signed contracts will bring: sales as far as lines can make them, less what purchases cost."""
    served = np.minimum(days.q_out, days.n_lines[..., None])
    price = days.receive / np.where(days.q_out > 0, days.q_out, 1)
    made = ((price - days.production_cost[..., None]) * served).sum(-1)
    missed = (days.q_out - served).sum(-1) * days.shortfall_penalty * days.price_out
    return made - missed - days.pay.sum(-1)


def sales_a_day(log: AgentLog) -> Array:
    """[D] units a day that the agent sold lately, as known in the morning: of the last days and the next ones."""
    c, days = log.contracts, log.days
    mine = (c["seller"] == log.index) & (c["negotiation"] != NONE)
    delivery, quantity, signed = (c[name][mine].astype(np.float64) for name in ("delivery", "quantity", "day"))
    today = days.day[:, None]  # [D, 1] against [K] contracts
    counts = (signed < today) & (delivery >= today - RECENT) & (delivery < today + RECENT)
    units = (counts * quantity).sum(1)
    seen = np.minimum(days.day, RECENT) + np.minimum(days.n_steps - days.day, RECENT)
    return (units + USUAL_SALES * USUAL_DAYS) / (seen + USUAL_DAYS)
