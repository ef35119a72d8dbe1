"""What a partner may still offer: its earlier offers by the money that they would bring today, best first.

Sorted once, they tell quickly how much the better ones of them bring together, whatever "better" is compared with:
`Fitting.better` finds the place where a value would stand and reads the sums up to there.

Letters: R remembered offers of a partner, S days of a plan.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from marlab.market.logs.daystate import Array
from marlab.market.rules.arrays import namespace
from marlab.market.rules.records import HEARD, Records


class Fitting(NamedTuple):
    """The same offers when only some of them fit the room that is left; the others bring nothing."""

    least: Array  # [..., R] their money with the sign changed, rising; inf: no offer
    money: Array  # [..., R + 1] money of those among the best r that fit
    fits: Array  # [..., R + 1] how many of the best r fit
    all: Array  # [...] how many there are

    def better(self, worth: Array) -> Array:
        """[...] the sum over all offers of their money, or of `worth` [...] where that is more."""
        xp = namespace(worth)
        place = xp.place(self.least, -worth)
        fit, money = xp.take(self.fits, place), xp.take(self.money, place)
        fits = self.fits[..., -1]
        return money + worth * (fits - fit) + xp.maximum(worth, 0.0) * (self.all - fits)


class Outlook(Protocol):
    """Anything that can tell what fits a room [..., S] by day; `all` [...]: how many offers are known."""

    @property
    def all(self) -> Array: ...

    def fitting(self, room: Array) -> Fitting: ...


class Prospects(NamedTuple):
    """Offers of earlier days, best first: each [..., R]."""

    least: Array  # their money with the sign changed, rising; inf: no offer
    quantity: Array
    ahead: Array  # days to delivery
    all: Array  # [...] how many there are

    def fitting(self, room: Array) -> Fitting:
        """Which of them fit `room` [..., S], whose leading axes are those of all offers of a factory, less one."""
        xp, days = namespace(room), room.shape[-1]
        free = xp.take(room[..., None, None, :], xp.minimum(self.ahead, days - 1))
        fits = (self.least < math.inf) & (self.ahead < days) & (self.quantity <= free)
        count, money = xp.floats(fits, self.least), xp.where(fits, -self.least, 0.0)
        return Fitting(self.least, xp.sums_before(money), xp.sums_before(count), self.all)


def prospects(records: Records, lowest: Array, highest: Array, cost: Array) -> Prospects:
    """The offers that partners [..., P] made on earlier days, at today's prices and cost of a unit, each [..., 1]."""
    xp = namespace(records.units)
    entries = min(max(1, xp.bound(records.heard_count, HEARD)), HEARD)
    quantity, position = records.heard_quantity[..., :entries], records.heard_position[..., :entries]
    there = xp.arange(entries, quantity) < records.heard_count[..., None]
    each = lowest[..., None] + position * (highest - lowest)[..., None] - cost[..., None]
    least = xp.where(there, -quantity * each, math.inf)
    order = xp.argsort(least)
    ahead = xp.gather(records.heard_ahead[..., :entries], order)
    count = xp.minimum(records.heard_count, HEARD)
    return Prospects(xp.gather(least, order), xp.gather(quantity, order), ahead, count)
