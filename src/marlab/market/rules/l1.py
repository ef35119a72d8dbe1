"""L1: what is safe to buy and sell, and the plain action that learning corrects.

Pure functions of a `DayState`. Every array has any leading dimensions `...`, so one implementation serves one day in
play and a batch of logged days. Deals signed during the day are part of the state (`DayState.with_signed`).

Two rule sets share the interface. `guide` bounds a purchase by what can still be processed when every line runs every
day, and a sale by cumulated production. `economic` follows what the simulator really does: input stock is never used
up and only what is sold is produced, so ten units serve a whole game and every delivery day stands for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import Array, DayState
from marlab.market.rules import economic

Bools = NDArray[np.bool_]

SMALLEST_TRADE = 1.0
"""A day is open when at least this much fits."""
ROUNDING = 1e-9
"""Slack before rounding to whole units, so that 21.000000001 is not made 22."""


@dataclass(frozen=True)
class L1Options:
    """Which rules L1 follows; stored with every dataset and checkpoint, so training and play cannot differ."""

    rules: Literal["guide", "economic"] = "guide"
    """guide: capacity times days left; economic: per-day checks with a stock of one day's production."""
    production: Literal["full_load", "material", "platform"] = "full_load"
    """Production in the guide's sell cap: every line every day, what material allows, or the simulator's rule."""
    sell_inventory: Literal["output", "sellable"] = "output"
    """What the guide's sell baseline halves: finished stock, or what can be made and delivered today."""
    buy_cap: Literal["capacity", "useful"] = "capacity"
    """useful: the guide's buy cap is also bounded by one day's production less stock and arrivals."""
    supply: Literal["expected", "sure"] = "expected"
    """Supply that the economic sell cap counts on: also what will most likely arrive, or what is certain today."""
    reserve: float = 1000.0
    """Money that is never spent on purchases."""
    short_reserve: bool = False
    """Reserve at most a tenth of the opening balance, for short games."""
    include_exogenous: bool = False
    """Count today's exogenous contracts among the commitments (`DayState.with_exogenous`)."""

    def __post_init__(self) -> None:
        """Refuse a word that is not in the lists above, wherever the options come from."""
        for field, words in _WORDS.items():
            if getattr(self, field) not in words:
                raise UserError(f"L1 option {field} is {getattr(self, field)!r}; it must be one of {', '.join(words)}.")
        if not self.reserve >= 0:
            raise UserError(f"L1 option reserve is {self.reserve}; it must be 0 or more.")


_WORDS = {
    "rules": ("guide", "economic"), "production": ("full_load", "material", "platform"),
    "sell_inventory": ("output", "sellable"), "buy_cap": ("capacity", "useful"), "supply": ("expected", "sure"),
}  # fmt: skip


class Caps(NamedTuple):
    """What one more deal may take."""

    buy: Array  # [..., H+1] units that may be bought for delivery in k days (Q_safe)
    sell: Array  # [..., H+1] units that may be sold for delivery in k days (Q_safe_sell)
    budget: Array  # [...] money free for purchases (B_free)

    def of(self, selling: Bools | bool) -> Array:
        """The caps of one side, chosen per row: [..., H+1]."""
        return np.where(np.asarray(selling)[..., None], self.sell, self.buy)


class Action(NamedTuple):
    """An offer before clipping: each [...]."""

    quantity: Array
    price: Array  # per unit
    day: Array  # days from today


class Issue(NamedTuple):
    """Bounds of one side's negotiations today, days counted from today: each [...]."""

    quantity_min: Array
    quantity_max: Array
    price_min: Array
    price_max: Array
    first: Array
    last: Array


class Clipped(NamedTuple):
    """A legal offer where `valid`, else no offer: each [...]."""

    quantity: Array
    price: Array
    day: Array
    valid: Bools


def at(schedule: Array, slot: Array) -> Array:
    """The entries [...] of schedules [..., H+1] at given slots [...]."""
    slot = np.asarray(slot)[..., None].astype(np.intp)
    shape = np.broadcast_shapes(schedule.shape[:-1], slot.shape[:-1])
    schedule = np.broadcast_to(schedule, (*shape, schedule.shape[-1]))
    return np.take_along_axis(schedule, np.broadcast_to(slot, (*shape, 1)), -1)[..., 0]


def capacity(state: DayState) -> Array:
    """C [..., H+1]: units that lines can still process from day t + k on."""
    left = (state.n_steps - state.day)[..., None] - np.arange(state.horizon + 1)
    return state.n_lines[..., None] * np.maximum(left, 0)


def backlog(stock: Array, arrivals: Array, lines: Array) -> Array:
    """b [..., K]: raw material left each morning when every line runs; b[0] = stock, b[k+1] = max(0, b[k] + in - n).

    Closed form of the recursion: the free walk minus its lowest point below zero so far.
    """
    walk = stock[..., None] + _before(arrivals - lines[..., None])
    return walk - np.minimum(np.minimum.accumulate(walk, -1), 0)


def production(state: DayState, mode: str, arrivals: Array) -> Array:
    """Units made each day [..., K] under one of the assumptions of `L1Options.production`."""
    lines = state.n_lines[..., None]
    if mode == "full_load":
        return np.broadcast_to(lines, arrivals.shape)
    # the first level does not buy: on later days its supply is what it received on average so far
    supply = np.where(state.can_buy, 0.0, state.exogenous_in_mean)[..., None] * (np.arange(arrivals.shape[-1]) > 0)
    arrivals = arrivals + supply
    if mode == "material":
        stock = backlog(state.inventory_input, arrivals, state.n_lines)
    else:  # the simulator adds what a day leaves over to the stock and never takes anything out of it
        stock = state.inventory_input[..., None] + _before(np.maximum(arrivals - lines, 0))
    return np.minimum(lines, stock + arrivals)


def sellable(state: DayState) -> Array:
    """Units [...] that can still be sold for today: finished stock and what can be made, less today's deliveries."""
    made = np.minimum(state.n_lines, state.inventory_input + state.q_in[..., 0])
    return np.maximum(0, state.inventory_output + made - state.q_out[..., 0])


def caps(state: DayState, options: L1Options) -> Caps:
    """How much one more deal may buy or sell per delivery day, and the money free for purchases."""
    state = _seen(state, options)
    reserve = np.asarray(options.reserve)
    if options.short_reserve:
        reserve = np.minimum(reserve, np.maximum(0, 0.1 * state.initial_balance))
    budget = np.maximum(0, state.balance - reserve - state.pay.sum(-1))
    if options.rules == "economic":
        return Caps(economic.buy_cap(state), economic.sell_cap(state, expected=options.supply == "expected"), budget)
    return Caps(_guide_buy(state, options), _guide_sell(state, options), budget)


def _seen(state: DayState, options: L1Options) -> DayState:
    """The commitments the guide's rules count; the economic ones count exogenous contracts by themselves."""
    return state.with_exogenous() if options.include_exogenous and options.rules == "guide" else state


def _guide_buy(state: DayState, options: L1Options) -> Array:
    arrivals = _folded(state.q_in)
    waiting = backlog(state.inventory_input, arrivals, state.n_lines)
    ahead = np.cumsum(arrivals[..., ::-1], -1)[..., ::-1]  # arrivals of day k and later
    safe = np.maximum(0, capacity(state)[..., :-1] - waiting - ahead)
    if options.buy_cap == "useful":
        useful = state.n_lines - state.inventory_input - arrivals.sum(-1)
        safe = np.minimum(safe, np.maximum(0, useful)[..., None])
    return _repeat_last(safe)


def _guide_sell(state: DayState, options: L1Options) -> Array:
    made = production(state, options.production, _folded(state.q_in))
    stock = state.inventory_output[..., None] + np.cumsum(made - _folded(state.q_out), -1)
    lowest = np.minimum.accumulate(stock[..., ::-1], -1)[..., ::-1]  # a sale for day k lowers the stock from k on
    return _repeat_last(np.maximum(0, lowest))


def _folded(schedule: Array) -> Array:
    """[..., H] from [..., H+1]: what is due in H days counts as due in H - 1, so no commitment is overlooked."""
    folded = schedule[..., :-1].copy()
    folded[..., -1] += schedule[..., -1]
    return folded


def _repeat_last(values: Array) -> Array:
    return np.concatenate([values, values[..., -1:]], -1)


def _before(steps: Array) -> Array:
    """Sums over the days before each day: [..., K]."""
    sums = np.cumsum(steps, -1)
    return np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], -1)


def issue_of(state: DayState, selling: Bools | bool) -> Issue:
    """Bounds of the side's negotiations; where a log lacks them, the league's rules around the trading price."""
    side = np.asarray(selling)
    bounds = [
        np.where(side, getattr(state, f"sell_{name}"), getattr(state, f"buy_{name}"))
        for name in ("quantity_min", "quantity_max", "price_min", "price_max", "day_min", "day_max")
    ]
    price = np.where(side, state.price_out, state.price_in)
    last = np.minimum(state.league_horizon, state.n_steps - 1 - state.day)
    known = bounds[1] >= 1  # also False where a log says nan
    lowest = np.maximum(1, np.floor(0.9 * price))
    usual = [np.ones_like(price), 3 * state.n_lines, lowest, np.maximum(lowest, np.floor(1.1 * price)), 0 * last, last]
    stated = [*bounds[:4], bounds[4] - state.day, bounds[5] - state.day]
    return Issue(*(np.where(known, bound, rule) for bound, rule in zip(stated, usual)))


def baseline(state: DayState, caps: Caps, selling: Bools | bool, options: L1Options, round: Array | int = 0) -> Action:
    """The stateless action [...] that L3 corrects, inside the bounds of the issue.

    The guide ignores `round` (of the negotiation). Where the economic rules want nothing, the quantity is 0.
    """
    selling = np.asarray(selling)
    issue = issue_of(state, selling)
    if options.rules == "economic":
        action = Action(*economic.baseline(state, caps, selling, issue, np.asarray(round, np.float64)))
        smallest = 0.0
    else:
        action = guide_baseline(state, caps, selling, options)
        smallest = SMALLEST_TRADE
    return Action(
        np.minimum(np.maximum(action.quantity, smallest), issue.quantity_max),
        np.clip(action.price, issue.price_min, issue.price_max),
        np.clip(action.day, 0, np.maximum(issue.last, 0)),
    )


def guide_baseline(state: DayState, caps: Caps, selling: Bools | bool, options: L1Options) -> Action:
    """The guide's action before it is brought into the issue."""
    cap = caps.of(selling)
    day = first_open(cap)
    price = np.where(selling, state.price_out, state.price_in)
    bought = np.minimum(at(cap, day) / 2, caps.budget / np.maximum(price, 1))
    stock = state.inventory_output if options.sell_inventory == "output" else sellable(_seen(state, options))
    quantity = np.maximum(SMALLEST_TRADE, np.where(selling, stock / 2, bought))
    return Action(quantity, np.where(selling, 1.05, 0.95) * price, day)


def first_open(cap: Array) -> Array:
    """The first day [...] with room for a trade in caps [..., H+1], else 1."""
    is_open = cap >= SMALLEST_TRADE
    return np.where(is_open.any(-1), is_open.argmax(-1), 1).astype(np.float64)


def time_mask(cap: Array, issue: Issue | None = None) -> Array:
    """0 where a trade fits, else -inf: [..., H+1]; with an issue, also -inf on days it does not offer."""
    is_open = cap >= SMALLEST_TRADE
    if issue is not None:
        slots = np.arange(cap.shape[-1])
        is_open = is_open & (slots >= issue.first[..., None]) & (slots <= issue.last[..., None])
    return np.where(is_open, 0.0, -np.inf)


def open_mask(mask: Array, day: Array) -> Array:
    """The mask with `day` (or today, if out of range) opened where nothing is open, so that a softmax stays finite."""
    slots = mask.shape[-1]
    day = np.where((day >= 0) & (day < slots), day, 0)
    closed = np.isneginf(mask).all(-1, keepdims=True)
    return np.where(closed & (np.arange(slots) == day[..., None]), 0.0, mask)


def clip_action(
    action: Action, cap: Array, budget: Array, selling: Bools | bool, issue: Issue, mask: Array | None = None
) -> Clipped:
    """The legal offer nearest to an action under caps [..., H+1] of its side, or none.

    Prices become whole: a buyer rounds down, a seller up. A day outside the issue or closed by `mask` makes no offer.
    """
    selling = np.asarray(selling)
    day = np.clip(np.rint(action.day), 0, cap.shape[-1] - 1)
    on_offer = (day >= issue.first) & (day <= issue.last)
    if mask is not None:
        on_offer = on_offer & (at(mask, day) == 0)
    inside = np.clip(action.price, issue.price_min, issue.price_max)
    whole = np.where(selling, np.ceil(inside - ROUNDING), np.floor(inside + ROUNDING))
    price = np.clip(whole, issue.price_min, issue.price_max)
    affordable = np.where(selling, np.inf, budget / np.maximum(price, ROUNDING))
    bound = np.minimum(np.minimum(at(cap, day), affordable), issue.quantity_max)
    quantity = np.maximum(0, np.floor(np.minimum(action.quantity + ROUNDING, bound)))
    return Clipped(quantity, price, day, on_offer & (quantity >= np.maximum(issue.quantity_min, SMALLEST_TRADE)))


def can_accept(offer: Action, cap: Array, budget: Array, selling: Bools | bool, issue: Issue) -> Bools:
    """Whether the partner's offer fits caps, budget and issue [...]; whether its price is good is not L1's matter."""
    slots = cap.shape[-1]
    in_reach = (offer.day >= 0) & (offer.day < slots) & (offer.day >= issue.first) & (offer.day <= issue.last)
    fits = offer.quantity <= at(cap, np.clip(np.nan_to_num(offer.day), 0, slots - 1))
    paid = np.asarray(selling) | (offer.quantity * offer.price <= budget)
    return in_reach & fits & paid
