"""What the networks see: x_static, X_temporal, features of threads and of all threads together, L3's aux and history.

Pure functions of a `DayState` and of offers known so far, for one day or a batch (leading dimensions `...`). Numbers
are normalised by n·T units, 10,000 of money and a price of 50, and clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import HORIZON, Array, DayState
from marlab.market.rules import goals, l1
from marlab.market.rules.arrays import namespace
from marlab.market.rules.goals import roles
from marlab.market.rules.l1 import Action, Bools, Issue
from marlab.market.rules.offers import ROUNDS, OfferSlots, no_offers

BALANCE = 10_000.0
PRICE = 50.0
QUANTITY = 10.0
STATIC_SIZE = 12
MAX_HISTORY = 20
FIRST_RELATIVE_TIME = 1 / (ROUNDS + 1)
"""Relative time of a first move. At a joint first proposal most negotiations have not started and would still say 0."""
BUY_PRESSURE, SELL_PRESSURE = 8, 9
"""Channels of X_temporal."""


@dataclass(frozen=True)
class FeatureOptions:
    """How features are made; stored with every dataset and checkpoint."""

    horizon: int = HORIZON
    """Days ahead: X_temporal has one row more."""
    offers: Literal["prev_day", "none", "same_day_full"] = "prev_day"
    """Offers L2 may see: yesterday's, none, or all of the same day (not known in play; for comparisons only)."""
    channels: Literal[10, 12] = 10
    """12 adds projections of raw and of finished stock under material-limited production."""
    extra: bool = False
    """Also give stock, room and partner statistics (`partners.extra_features`)."""

    def __post_init__(self) -> None:
        """Refuse values outside the lists above, wherever the options come from."""
        words = {"offers": ("prev_day", "none", "same_day_full"), "channels": (10, 12)}
        for field, allowed in words.items():
            value, right = getattr(self, field), ", ".join(map(str, allowed))
            if value not in allowed:
                raise UserError(f"feature option {field} is {value!r}; it must be one of {right}.")
        if self.horizon < 1:
            raise UserError("feature options need a horizon of at least 1.")


def _same_horizon(state: DayState, options: FeatureOptions) -> None:
    if state.horizon != options.horizon:
        raise ValueError(f"the state looks {state.horizon} days ahead, the features {options.horizon}")


def stock_norm(state: DayState) -> Array:
    """M [...]: units the factory could make in the whole game."""
    return namespace(state.day).maximum(1, state.n_lines * state.n_steps)


def static_features(state: DayState, options: FeatureOptions) -> Array:
    """x_static [..., 12]."""
    _same_horizon(state, options)
    xp = namespace(state.day)
    units = stock_norm(state)
    return xp.stack(
        [
            xp.clip(state.balance / BALANCE, 0, 2),
            xp.clip(state.inventory_input / units, 0, 1),
            xp.clip(state.inventory_output / units, 0, 1),
            state.day / xp.maximum(1, state.n_steps),
            xp.clip(state.n_lines / 10, 0, 1),
            xp.clip(state.production_cost / PRICE, 0, 1),
            xp.clip(state.price_in / PRICE, 0, 2),
            xp.clip(state.price_out / PRICE, 0, 2),
            xp.clip(state.q_in.sum(-1) / units, 0, 1),
            xp.clip(state.q_out.sum(-1) / units, 0, 1),
            xp.clip(state.pay.sum(-1) / BALANCE, 0, 1),
            xp.clip(state.receive.sum(-1) / BALANCE, 0, 1),
        ]
    )


def temporal_features(state: DayState, slots: OfferSlots, options: FeatureOptions) -> Array:
    """X_temporal [..., H+1, 10 or 12]: commitments, projections, prices and pressure by delivery day."""
    _same_horizon(state, options)
    xp = namespace(state.day)
    if options.offers == "none":
        slots = no_offers(horizon=options.horizon, like=state.day)
    units = stock_norm(state)[..., None]
    lines = xp.expand(state.n_lines[..., None], state.q_in.shape)
    left = l1.capacity(state)
    stock = state.inventory_input[..., None] + xp.cumsum(state.q_in - lines)
    spent = state.receive - state.pay - lines * state.production_cost[..., None]
    channels = [
        state.q_in / units,
        state.q_out / units,
        lines / units,
        xp.clip(stock / units, -1, 2),
        xp.clip((left - stock) / units, -1, 2),
        xp.clip((state.balance[..., None] + xp.cumsum(spent)) / BALANCE, -1, 2),
        _price_difference(state.pay, state.q_in, slots, goals.BUY, state.price_in),
        _price_difference(state.receive, state.q_out, slots, goals.SELL, state.price_out),
        *_pressures(state, slots),
    ]
    if options.channels == 12:
        made = l1.production(state, state.q_in)
        supply = l1.later_supply(state, lines.shape[-1])
        raw = state.inventory_input[..., None] + xp.cumsum(state.q_in + supply - made)
        finished = state.inventory_output[..., None] + xp.cumsum(made - state.q_out)
        channels += [xp.clip(raw / units, -1, 2), xp.clip(finished / units, -1, 2)]
    return xp.stack(channels)


def _pressures(state: DayState, slots: OfferSlots) -> tuple[Array, Array]:
    """The two channels of pressure, each [..., H+1]: on buyers (what is sold) and on sellers (what is bought)."""
    xp = namespace(state.day)
    base = xp.maximum(1, l1.capacity(state))
    on_buyers = xp.clip((state.q_out + slots.pressure[..., goals.SELL, :]) / base, 0, 1)
    return on_buyers, xp.clip((state.q_in + slots.pressure[..., goals.BUY, :]) / base, 0, 1)


def _price_difference(money: Array, quantity: Array, slots: OfferSlots, side: int, spot: Array) -> Array:
    """Future price less the trading price [..., H+1]: a mix of signed prices, offered prices and the trading price."""
    xp = namespace(money)
    spot = spot[..., None]
    signed, offered = quantity > 0, slots.weight[..., side, :] > 0
    deal = money / xp.where(signed, quantity, 1.0)
    offer = slots.weighted_price[..., side, :] / xp.where(offered, slots.weight[..., side, :], 1.0)
    both = 0.6 * deal + 0.3 * offer + 0.1 * spot
    dealt = xp.where(offered, both, 0.75 * deal + 0.25 * spot)
    future = xp.where(signed, dealt, xp.where(offered, 0.6 * offer + 0.4 * spot, spot))
    return xp.clip((future - spot) / PRICE, -1, 1)


def latest_day(offer_day: Array, base_day: Array, horizon: int = HORIZON) -> Array:
    """delta* [...]: the day of the thread's latest offer (nan without one), else of the baseline; in 0..H."""
    xp = namespace(base_day)
    return xp.clip(xp.where(xp.isnan(offer_day), base_day, offer_day), 0, horizon)


def priority(day: Array, pressure: Array, relative_time: Array, price_gap: Array) -> Array:
    """Attention a thread deserves [...], in 0.1..3: near delivery, pressure, late rounds, price near the goal."""
    xp = namespace(day)
    urgency = 1 / (day + 1)
    closeness = 1 / (1 + 5 * xp.abs(price_gap))
    return xp.clip(1 + 0.5 * (urgency + pressure + relative_time + closeness), 0.1, 3)


class Negotiations(NamedTuple):
    """Active negotiations: where each stands, and what L1 says to its side."""

    selling: Bools  # [...]
    base: Action  # the projected baseline
    cap: Array  # [..., H+1] of the side
    mask: Array  # [..., H+1]
    latest: Action  # the last offer of either party, nan where there is none
    history_length: Array  # [...] offers so far
    relative_time: Array  # [...]


def thread_features(state: DayState, x_temporal: Array, goal: Array, negotiations: Negotiations) -> Array:
    """thread_feat [..., 24] of negotiations."""
    xp = namespace(state.day)
    selling, base, cap, mask, latest, history_length, relative_time = negotiations
    units = stock_norm(state)
    day = latest_day(latest.day, base.day, state.horizon)
    row = _row(x_temporal, day)
    bucket = goals.bucket_of(day)
    buy_quantity, buy_price = goals.part(goal, False, bucket)
    sell_quantity, sell_price = goals.part(goal, True, bucket)
    price_gap = _gap(latest.price, xp.where(selling, sell_price, buy_price)) / PRICE
    quantity_gap = _gap(latest.quantity, xp.where(selling, sell_quantity, buy_quantity)) / units
    pressure = xp.where(selling, row[..., BUY_PRESSURE], row[..., SELL_PRESSURE])
    columns = [
        priority(day, pressure, relative_time, price_gap),
        day / state.horizon,
        l1.at(mask, day) == 0,
        l1.at(cap, day) / units,
        base.quantity / units,
        base.price / PRICE,
        buy_quantity / units,
        sell_quantity / units,
        buy_price / PRICE,
        sell_price / PRICE,
        xp.minimum(history_length, MAX_HISTORY) / MAX_HISTORY,
        xp.clip(relative_time, 0, 1),
        xp.clip(price_gap, -2, 2),
        xp.clip(quantity_gap, -2, 2),
    ]
    return xp.cat([xp.stack(columns), row[..., :10]])


def priorities(
    state: DayState, slots: OfferSlots, options: FeatureOptions, goal: Array, negotiations: Negotiations
) -> Array:
    """The first of the thread's features [..., K] alone, which is all that the heuristic L4 asks for: `state` [...],
    `slots` of the offers known so far, `negotiations` [..., K]."""
    xp = namespace(state.day)
    selling, latest = negotiations.selling, negotiations.latest
    day = latest_day(latest.day, negotiations.base.day, state.horizon)
    on_buyers, on_sellers = _pressures(state, slots)
    pressure = xp.where(selling, _at_days(on_buyers, day), _at_days(on_sellers, day))
    _, price = goals.part(goal[..., None, :], selling, goals.bucket_of(day))
    return priority(day, pressure, negotiations.relative_time, _gap(latest.price, price) / PRICE)


def _at_days(channel: Array, day: Array) -> Array:
    """A channel [..., H+1] at the days [..., K] of threads."""
    xp = namespace(channel)
    return xp.gather(xp.expand(channel, (*day.shape[:-1], channel.shape[-1])), xp.ints(day))


def _gap(offered: Array, wanted: Array) -> Array:
    """How far an offer is from a goal [...]; 0 without an offer."""
    xp = namespace(offered)
    return xp.where(xp.isnan(offered), 0.0, offered - wanted)


def _row(x_temporal: Array, day: Array) -> Array:
    """X_temporal [..., H+1, C] at given days [...]: [..., C]."""
    xp = namespace(x_temporal)
    return xp.take(xp.swap(x_temporal), day[..., None])


def global_features(goal: Array, x_static: Array, n_buy: Array, n_sell: Array) -> Array:
    """global_feat [..., 30]: the day's goal, x_static and the number of active negotiations of both sides."""
    xp = namespace(goal)
    return xp.cat([goal, x_static, xp.stack([xp.floats(count, goal) / 10 for count in (n_buy, n_sell)])])


def micro_aux(
    state: DayState, budget: Array, selling: Bools, issue: Issue, relative_time: Array, offer_day: Array,
    base_day: Array, goal: Array, signed: Array,
) -> Array:  # fmt: skip
    """L3's aux [..., 7]; `offer_day` is that of the partner's offer on the table (nan without one), `signed`
    [..., H+1] the units signed today on the thread's side before the decision, by delivery slot.
    """
    xp = namespace(state.day)
    day = latest_day(offer_day, base_day, state.horizon)
    bucket = goals.bucket_of(day)
    wanted, _ = goals.part(goal, selling, bucket)
    same_bucket = goals.bucket_of(xp.arange(state.horizon + 1, state.day)) == bucket[..., None]
    done = xp.where(same_bucket, signed, 0.0).sum(-1)
    columns = [
        relative_time, state.day / xp.maximum(1, state.n_steps), budget / BALANCE, issue.price_min / PRICE,
        issue.price_max / PRICE, ~xp.isnan(offer_day), (wanted - done) / QUANTITY,
    ]  # fmt: skip
    return xp.stack(columns)


def history_rows(quantity: Array, price: Array, delta: Array, mine: Bools, horizon: int = HORIZON) -> Array:
    """Rows [..., 4] of a negotiation's history: quantity, price, days to delivery, mine."""
    xp = namespace(quantity)
    return xp.stack([quantity, price, xp.clip(delta, 0, horizon), mine])


class StateBuilder:
    """The state tensors under the guide's name, with one set of options."""

    def __init__(self, horizon: int = HORIZON, options: FeatureOptions | None = None) -> None:
        """`horizon` must be that of the states given later."""
        self.options = options or FeatureOptions(horizon=horizon)

    def build(self, state: DayState, slots: OfferSlots | None = None) -> tuple[Array, Array, Array]:
        """x_static [..., 12], X_temporal [..., H+1, 10 or 12] and roles [..., 2] at the start of a day."""
        slots = slots or no_offers(state.day.shape, state.horizon)
        return static_features(state, self.options), temporal_features(state, slots, self.options), roles(state)
