"""Offers a factory has seen, faded by age and summed by delivery day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import HORIZON, Array, DayState
from marlab.market.rules.arrays import namespace
from marlab.market.rules.goals import SELL, Trades

ROUNDS = 20
"""A negotiation's rounds: on the clock of offers, yesterday's rounds come this many before today's."""
FADES = 0.3
"""How fast trust in an offer fades with rounds."""
LARGEST_LOT = 30
"""Units: the quantity issue of the league ends here."""


class Offers(NamedTuple):
    """Offers that were made or received, flat [M]; each names the row of the state it is known to."""

    row: NDArray[np.integer]
    side: NDArray[np.integer]  # goals.BUY or goals.SELL, as the factory sees it
    delta: Array  # days to delivery, counted from the day of the row
    quantity: Array
    price: Array  # per unit
    clock: Array  # round in which the factory saw or made it, less ROUNDS if that was yesterday


class OfferSlots(NamedTuple):
    """Offers summed by delivery slot; side 0 = buying, 1 = selling: each [..., 2, H+1]."""

    weight: Array
    weighted_price: Array
    pressure: Array  # quantity times weight times how good the price is for the other side of the market


def no_offers(leading: tuple[int, ...] = (), horizon: int = HORIZON, like: Array | None = None) -> OfferSlots:
    """Slots without an offer."""
    zeros = namespace(like).zeros((*leading, 2, horizon + 1), like)
    return OfferSlots(zeros, zeros, zeros)


def offer_weight(age: Array, quantity: Array) -> Array:
    """Trust in an offer [...]: it fades with rounds and grows with quantity."""
    xp = namespace(quantity)
    return xp.exp(-FADES * age) * xp.sqrt(quantity / (quantity + 10))


def weights(offers: Offers, rows: int) -> Array:
    """Weight [M] of each offer; its age counts back from the latest offer known to the same row."""
    latest = namespace(offers.clock).largest(offers.row, offers.clock, rows)
    return offer_weight(latest[offers.row] - offers.clock, offers.quantity)


def as_trades(offers: Offers, rows: int) -> Trades:
    """The same offers as `goals.goal_labels` takes them."""
    return Trades(offers.row, offers.side, offers.delta, offers.quantity, offers.price, weights(offers, rows))


def offer_slots(state: DayState, offers: Offers) -> OfferSlots:
    """Slots [N, 2, H+1] of a batch of N states.

    Offers whose delivery is past or beyond the horizon date the others but fill no slot.
    """
    xp, rows, slots = namespace(state.day), len(state), state.horizon + 1
    row, side, delta, quantity, price, _ = offers
    weight = weights(offers, rows)
    spot_in, spot_out = xp.maximum(state.price_in, 1)[row], xp.maximum(state.price_out, 1)[row]
    good = xp.clip(xp.where(side == SELL, price / spot_out, spot_in / xp.maximum(price, 1)), 0.5, 2)
    used = (delta >= 0) & (delta < slots) & (quantity > 0) & (price > 0)
    cell = xp.ints(((row * 2 + side) * slots + delta)[used])

    def summed(amount: Array) -> Array:
        return xp.add_up(cell, amount[used], rows * 2 * slots).reshape(rows, 2, slots)

    return OfferSlots(summed(weight), summed(weight * price), summed(weight * quantity * good))


class OfferBook:
    """The offers a playing agent knows: yesterday's and today's so far, in the order it saw or made them."""

    def __init__(self) -> None:
        """Start with no offers."""
        self._yesterday: list[tuple[float, ...]] = []
        self._today: list[tuple[float, ...]] = []

    def new_day(self) -> None:
        """Today's offers become yesterday's; those of yesterday are forgotten."""
        self._yesterday, self._today = self._today, []

    def add(self, side: int, delivery: float, quantity: float, price: float, round: float) -> None:
        """Note an offer of today; `delivery` is the absolute day."""
        self._today.append((side, delivery, quantity, price, round))

    def known(self, day: float) -> Offers:
        """All known offers, for a batch of one state of the given day."""
        rows = [(*offer[:4], offer[4] - ROUNDS) for offer in self._yesterday]
        return _flat([*rows, *self._today], day)


def _flat(rows: Iterable[tuple[float, ...]], day: float) -> Offers:
    table = np.array(list(rows), dtype=np.float64).reshape(-1, 5)
    side, delivery, quantity, price, clock = table.T
    return Offers(np.zeros(len(table), np.intp), side.astype(np.intp), delivery - day, quantity, price, clock)
