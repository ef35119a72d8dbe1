"""L1: what is safe to buy and sell, and the plain action that learning corrects.

Pure functions of a `DayState`. Every array has any leading dimensions `...`, so one implementation serves one day in
play and a batch of logged days. Deals signed during the day are part of the state (`DayState.with_signed`).

Two rule sets share the interface. `guide` bounds a purchase by what can still be processed when every line runs every
day, and a sale by cumulated production. `economic` follows what the simulator really does: input stock is never used
up and only what is sold is produced, so ten units serve a whole game and every delivery day stands for itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import Array, DayState
from marlab.market.rules import economic
from marlab.market.rules.arrays import namespace

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
    reserve: float = 1000.0
    """Money that is never spent on purchases."""
    short_reserve: bool = False
    """Reserve at most a tenth of the opening balance, for short games."""

    def __post_init__(self) -> None:
        """Refuse a word that is not in the lists above, wherever the options come from."""
        if self.rules not in ("guide", "economic"):
            raise UserError(f"L1 option rules is {self.rules!r}; it must be one of guide, economic.")
        if not self.reserve >= 0:
            raise UserError(f"L1 option reserve is {self.reserve}; it must be 0 or more.")


ECONOMIC = L1Options(rules="economic", short_reserve=True)
"""L1 of rule W, and of an agent without networks unless it is told otherwise."""


class Caps(NamedTuple):
    """What one more deal may take."""

    buy: Array  # [..., H+1] units that may be bought for delivery in k days (Q_safe)
    sell: Array  # [..., H+1] units that may be sold for delivery in k days (Q_safe_sell)
    budget: Array  # [...] money free for purchases (B_free)

    def of(self, selling: Bools | bool) -> Array:
        """The caps of one side, chosen per row: [..., H+1]."""
        if isinstance(selling, bool):
            return self.sell if selling else self.buy
        return namespace(self.buy).where(selling[..., None], self.sell, self.buy)

    def per_thread(self) -> Caps:
        """The same with an axis for threads: [..., 1, H+1] and [..., 1]."""
        return Caps(self.buy[..., None, :], self.sell[..., None, :], self.budget[..., None])


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
    return namespace(schedule).take(schedule, slot)


def capacity(state: DayState) -> Array:
    """C [..., H+1]: units that lines can still process from day t + k on."""
    xp = namespace(state.day)
    left = (state.n_steps - state.day)[..., None] - xp.arange(state.horizon + 1, state.day)
    return state.n_lines[..., None] * xp.maximum(left, 0)


def backlog(stock: Array, arrivals: Array, lines: Array) -> Array:
    """b [..., K]: raw material left each morning when every line runs; b[0] = stock, b[k+1] = max(0, b[k] + in - n).

    Closed form of the recursion: the free walk minus its lowest point below zero so far.
    """
    xp = namespace(arrivals)
    walk = stock[..., None] + _before(arrivals - lines[..., None])
    return walk - xp.minimum(xp.running_min(walk), 0)


def production(state: DayState, arrivals: Array) -> Array:
    """Units [..., K] that lines make each day of the material there is; the first level, which does not buy, receives
    on later days what it did on average so far."""
    arrivals = arrivals + later_supply(state, arrivals.shape[-1])
    stock = backlog(state.inventory_input, arrivals, state.n_lines)
    return namespace(arrivals).minimum(state.n_lines[..., None], stock + arrivals)


def later_supply(state: DayState, slots: int) -> Array:
    """[..., slots]: what a first-level factory received on average so far, on every day after today; 0 elsewhere."""
    xp = namespace(state.day)
    mean = xp.where(state.can_buy, 0.0, state.exogenous_in_mean)
    return mean[..., None] * (xp.arange(slots, state.day) > 0)


def sellable(state: DayState) -> Array:
    """Units [...] that can still be sold for today: finished stock and what can be made, less today's deliveries."""
    xp = namespace(state.day)
    made = xp.minimum(state.n_lines, state.inventory_input + state.q_in[..., 0])
    return xp.maximum(0, state.inventory_output + made - state.q_out[..., 0])


def caps(state: DayState, options: L1Options) -> Caps:
    """How much one more deal may buy or sell per delivery day, and the money free for purchases."""
    if options.rules == "economic":
        return Caps(economic.buy_cap(state), economic.sell_cap(state), _budget(state, options))
    return Caps(_guide_buy(state), _guide_sell(state), _budget(state, options))


class SideLeft:
    """The caps of one side while the offers of a round are planned: what is planned lowers them.

    A planned purchase is not yet material to sell from, nor a planned sale a reason to buy, so purchases lower only
    the buy cap and the budget, and sales only the sell cap, until they are signed and part of the state.
    """

    def __init__(self, state: DayState, options: L1Options, selling: bool) -> None:
        self._state, self._options, self._selling = state, options, selling
        self._able = self._useful = None
        if options.rules == "economic" and selling:
            self._able = economic.ability(state)
        elif options.rules == "economic":
            self._useful = economic.useful(state)
        self._free = None if selling else (_unreserved(state, options), state.pay.sum(-1))

    def cap(self, planned: Array) -> Array:
        """[..., H+1] units that one more deal may take, with `planned` [..., H+1] units in other offers."""
        state = self._state
        if self._selling and self._able is not None:
            return economic.room(self._able, state.q_out + planned)
        if self._selling:
            return _guide_sell(state.replace(q_out=state.q_out + planned))
        if self._useful is not None:
            return economic.for_today(self._useful - planned.sum(-1), state)
        return _guide_buy(state.replace(q_in=state.q_in + planned))

    def budget(self, planned: Array) -> Array:
        """[...] money free for purchases, with `planned` [...] money in other offers."""
        free, pay = self._free or (_unreserved(self._state, self._options), self._state.pay.sum(-1))
        return namespace(free).maximum(0, free - (pay + planned))


def _unreserved(state: DayState, options: L1Options) -> Array:
    """Money [...] without the reserve."""
    xp = namespace(state.day)
    reserve = options.reserve
    if options.short_reserve:
        reserve = xp.minimum(reserve, xp.maximum(0, 0.1 * state.initial_balance))
    return state.balance - reserve


def _budget(state: DayState, options: L1Options) -> Array:
    return namespace(state.day).maximum(0, _unreserved(state, options) - state.pay.sum(-1))


def _guide_buy(state: DayState) -> Array:
    xp = namespace(state.day)
    arrivals = _folded(state.q_in)
    waiting = backlog(state.inventory_input, arrivals, state.n_lines)
    ahead = xp.flip(xp.cumsum(xp.flip(arrivals)))  # arrivals of day k and later
    return _repeat_last(xp.maximum(0, capacity(state)[..., :-1] - waiting - ahead))


def _guide_sell(state: DayState) -> Array:
    xp = namespace(state.day)
    sold = _folded(state.q_out)  # every line runs every day
    stock = state.inventory_output[..., None] + xp.cumsum(state.n_lines[..., None] - sold)
    lowest = xp.flip(xp.running_min(xp.flip(stock)))  # a sale for day k lowers the stock from k on
    return _repeat_last(xp.maximum(0, lowest))


def _folded(schedule: Array) -> Array:
    """[..., H] from [..., H+1]: what is due in H days counts as due in H - 1, so no commitment is overlooked."""
    return namespace(schedule).cat([schedule[..., :-2], schedule[..., -2:].sum(-1)[..., None]])


def _repeat_last(values: Array) -> Array:
    return namespace(values).cat([values, values[..., -1:]])


def _before(steps: Array) -> Array:
    """Sums over the days before each day: [..., K]."""
    xp = namespace(steps)
    sums = xp.cumsum(steps)
    return xp.cat([xp.zeros_like(sums[..., :1]), sums[..., :-1]])


def issue_of(state: DayState, selling: Bools | bool) -> Issue:
    """Bounds of the side's negotiations; where a log lacks them, the league's rules around the trading price."""
    if not isinstance(selling, bool):
        xp = namespace(state.day)
        sold, bought = issue_of(state, True), issue_of(state, False)
        return Issue(*(xp.where(selling, sale, purchase) for sale, purchase in zip(sold, bought)))
    xp, side = namespace(state.day), "sell" if selling else "buy"
    names = ("quantity_min", "quantity_max", "price_min", "price_max", "day_min", "day_max")
    bounds = [getattr(state, f"{side}_{name}") for name in names]
    price = state.price_out if selling else state.price_in
    last = xp.minimum(state.league_horizon, state.n_steps - 1 - state.day)
    known = bounds[1] >= 1  # also False where a log says nan
    lowest = xp.maximum(1, xp.floor(0.9 * price))
    usual = [xp.ones_like(price), 3 * state.n_lines, lowest, xp.maximum(lowest, xp.floor(1.1 * price)), 0 * last, last]
    stated = [*bounds[:4], bounds[4] - state.day, bounds[5] - state.day]
    return Issue(*(xp.where(known, bound, rule) for bound, rule in zip(stated, usual)))


def baseline(state: DayState, caps: Caps, selling: Bools | bool, options: L1Options, round: Array | int = 0) -> Action:
    """The stateless action [...] that L3 corrects, inside the bounds of the issue.

    The guide ignores `round` (of the negotiation). Where the economic rules want nothing, the quantity is 0.
    """
    xp = namespace(state.day)
    issue = issue_of(state, selling)
    if options.rules == "economic":
        side, now = xp.asarray(selling, state.day), xp.asarray(round, state.day)
        action = Action(*economic.baseline(state, caps, side, issue, now))
        smallest = 0.0
    else:
        action = guide_baseline(state, caps, selling)
        smallest = SMALLEST_TRADE
    return Action(
        xp.minimum(xp.maximum(action.quantity, smallest), issue.quantity_max),
        xp.clip(action.price, issue.price_min, issue.price_max),
        xp.clip(action.day, 0, xp.maximum(issue.last, 0)),
    )


def guide_baseline(state: DayState, caps: Caps, selling: Bools | bool) -> Action:
    """The guide's action before it is brought into the issue."""
    xp = namespace(state.day)
    cap = caps.of(selling)
    day = first_open(cap)
    selling = xp.asarray(selling, state.day)
    price = xp.where(selling, state.price_out, state.price_in)
    bought = xp.minimum(at(cap, day) / 2, caps.budget / xp.maximum(price, 1))
    quantity = xp.maximum(SMALLEST_TRADE, xp.where(selling, state.inventory_output / 2, bought))
    return Action(quantity, xp.where(selling, 1.05 * price, 0.95 * price), day)


def first_open(cap: Array) -> Array:
    """The first day [...] with room for a trade in caps [..., H+1], else 1."""
    xp = namespace(cap)
    is_open = cap >= SMALLEST_TRADE
    return xp.where(xp.any(is_open), xp.floats(xp.argmax(is_open), cap), 1.0)


def open_days(cap: Array, issue: Issue) -> Bools:
    """Days of an issue for which a trade fits: [..., H+1]."""
    slots = namespace(cap).arange(cap.shape[-1], cap)
    return (cap >= SMALLEST_TRADE) & (slots >= issue.first[..., None]) & (slots <= issue.last[..., None])


def time_mask(cap: Array, issue: Issue | None = None) -> Array:
    """0 where a trade fits, else -inf: [..., H+1]; with an issue, also -inf on days it does not offer."""
    xp = namespace(cap)
    is_open = cap >= SMALLEST_TRADE if issue is None else open_days(cap, issue)
    return xp.where(is_open, xp.zeros_like(cap[..., :1]), -math.inf)


def open_mask(mask: Array, day: Array) -> Array:
    """The mask with `day` (or today, if out of range) opened where nothing is open, so that a softmax stays finite."""
    xp, slots = namespace(mask), mask.shape[-1]
    day = xp.where((day >= 0) & (day < slots), day, 0.0)
    closed = xp.all(mask == -math.inf)[..., None]
    return xp.where(closed & (xp.arange(slots, mask) == day[..., None]), 0.0, mask)


def clip_action(
    action: Action, cap: Array, budget: Array, selling: Bools | bool, issue: Issue, mask: Array | None = None
) -> Clipped:
    """The legal offer nearest to an action under caps [..., H+1] of its side, or none.

    Prices become whole: a buyer rounds down, a seller up. A day outside the issue or closed by `mask` makes no offer.
    """
    xp = namespace(cap)
    selling = xp.asarray(selling, cap)
    day = xp.clip(xp.rint(action.day), 0, cap.shape[-1] - 1)
    on_offer = (day >= issue.first) & (day <= issue.last)
    if mask is not None:
        on_offer = on_offer & (at(mask, day) == 0)
    price = whole_price(action.price, selling, issue)
    affordable = xp.where(selling, math.inf, budget / xp.maximum(price, ROUNDING))
    bound = xp.minimum(xp.minimum(at(cap, day), affordable), issue.quantity_max)
    quantity = xp.maximum(0, xp.floor(xp.minimum(action.quantity + ROUNDING, bound)))
    return Clipped(quantity, price, day, on_offer & (quantity >= xp.maximum(issue.quantity_min, SMALLEST_TRADE)))


def whole_price(price: Array, selling: Bools | bool, issue: Issue) -> Array:
    """The whole price nearest to a price inside the issue: a buyer rounds down, a seller up."""
    xp = namespace(price)
    inside = xp.clip(price, issue.price_min, issue.price_max)
    if isinstance(selling, bool):
        whole = xp.ceil(inside - ROUNDING) if selling else xp.floor(inside + ROUNDING)
    else:
        whole = xp.where(selling, xp.ceil(inside - ROUNDING), xp.floor(inside + ROUNDING))
    return xp.clip(whole, issue.price_min, issue.price_max)


def can_accept(offer: Action, cap: Array, budget: Array, selling: Bools | bool, issue: Issue) -> Bools:
    """Whether the partner's offer fits caps, budget and issue [...]; whether its price is good is not L1's matter."""
    xp, slots = namespace(cap), cap.shape[-1]
    in_reach = (offer.day >= 0) & (offer.day < slots) & (offer.day >= issue.first) & (offer.day <= issue.last)
    fits = offer.quantity <= at(cap, xp.clip(xp.zero_nan(offer.day), 0, slots - 1))
    paid = selling | (offer.quantity * offer.price <= budget)
    return in_reach & fits & paid
