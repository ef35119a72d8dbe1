"""What a factory knows when a day begins, before the first offer: the record everything else is computed from.

`awi.py` fills it from the simulator, the recorder stores it, the sample builder reads it back, and L1, features and
goals are functions of it. One layout serves one day and many: a single day has numbers and schedules [H+1], a batch
of N days has [N] and [N, H+1]. Slot k of a schedule is the day `day + k`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HORIZON = 40
"""H: plans look this many days ahead; schedules have H + 1 slots."""
LINES = 10
"""The length of `exogenous_reach`: factories of the league have ten lines."""


class DayState(NamedTuple):
    """A factory at `before_step`. Every field is float64; money is in the simulator's units, quantities in units."""

    # the game and the factory
    day: Array
    n_steps: Array
    n_lines: Array
    n_products: Array
    input_product: Array
    output_product: Array
    n_suppliers: Array
    n_consumers: Array
    league_horizon: Array  # an offer's delivery day is at most this far away
    production_cost: Array  # per unit
    # money and stock
    balance: Array
    initial_balance: Array  # the balance of the first morning
    score: Array
    inventory_input: Array
    inventory_output: Array
    # prices and the day's rates (rates are shares of the trading price)
    price_in: Array  # trading price of my input product
    price_out: Array
    storage_cost: Array
    shortfall_penalty: Array
    disposal_cost: Array
    # needs as the simulator states them (may be negative), and today's exogenous contracts (prices are totals)
    needed_supplies: Array
    needed_sales: Array
    exogenous_in_quantity: Array
    exogenous_in_price: Array
    exogenous_out_quantity: Array
    exogenous_out_price: Array
    exogenous_in_mean: Array  # mean quantity over the days seen so far, today included
    exogenous_out_mean: Array
    exogenous_reach: Array  # [10]: days seen so far on which the exogenous quantity (in + out) reached 1..10
    # the issues of today's negotiations; days are absolute
    buy_quantity_min: Array
    buy_quantity_max: Array
    buy_price_min: Array
    buy_price_max: Array
    buy_day_min: Array
    buy_day_max: Array
    sell_quantity_min: Array
    sell_quantity_max: Array
    sell_price_min: Array
    sell_price_max: Array
    sell_day_min: Array
    sell_day_max: Array
    # signed contracts by delivery slot, exogenous ones not included: [H+1]
    q_in: Array
    q_out: Array
    pay: Array  # money to pay for q_in
    receive: Array  # money to receive for q_out

    @property
    def can_buy(self) -> NDArray[np.bool_]:
        """Whether the factory buys from other agents: all but the first level do."""
        return self.input_product != 0

    @property
    def can_sell(self) -> NDArray[np.bool_]:
        """Whether the factory sells to other agents: all but the last level do."""
        return self.output_product != self.n_products - 1

    @property
    def horizon(self) -> int:
        """H, from the length of the schedules."""
        return self.q_in.shape[-1] - 1

    def __len__(self) -> int:
        """Number of days in a batch."""
        return self.day.shape[0]

    def replace(self, **fields: Array) -> DayState:
        """The same day with other values of some fields (`_replace` of a tuple would be misled by `len`)."""
        return DayState(**{**dict(zip(DayState._fields, self)), **fields})

    def take(self, index: int | slice | NDArray[np.integer] | NDArray[np.bool_]) -> DayState:
        """One day or some days of a batch."""
        return DayState(*(np.asarray(field[index]) for field in self))

    def with_signed(self, q_in: Array, pay: Array, q_out: Array, receive: Array) -> DayState:
        """The same morning with contracts signed during the day: each argument is [..., H+1], to be added."""
        return self.replace(
            q_in=self.q_in + q_in, pay=self.pay + pay, q_out=self.q_out + q_out, receive=self.receive + receive
        )

    def per_thread(self) -> DayState:
        """The same with an axis for negotiations: [..., 1] and schedules [..., 1, H+1]."""
        return DayState(*(f[..., None, :] if n in _LISTS else f[..., None] for n, f in zip(DayState._fields, self)))


SCHEDULES = ("q_in", "q_out", "pay", "receive")
"""Fields with H + 1 slots."""
SCALARS = tuple(name for name in DayState._fields if name not in SCHEDULES and name != "exogenous_reach")
"""Fields with one number per day."""
_LISTS = frozenset((*SCHEDULES, "exogenous_reach"))


def from_mapping(values: Mapping[str, object]) -> DayState:
    """A day (or a batch) from numbers and arrays by field name; a missing field raises KeyError."""
    return DayState(*(np.asarray(values[name], dtype=np.float64) for name in DayState._fields))


def stack(days: Iterable[DayState]) -> DayState:
    """A batch [N] from single days."""
    return DayState(*(np.stack(fields) for fields in zip(*days)))


def fit_schedule(schedule: Array, horizon: int) -> Array:
    """A schedule [..., S] cut or filled with zeros to [..., horizon + 1]: near the end of a game logs are shorter."""
    slots = schedule.shape[-1]
    if slots >= horizon + 1:
        return schedule[..., : horizon + 1]
    return np.concatenate([schedule, np.zeros((*schedule.shape[:-1], horizon + 1 - slots))], -1)
