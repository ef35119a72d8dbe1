"""The only file that reads the simulator's AWI: it turns a morning into a DayState.

A `Reader` belongs to one agent in one world and is asked once every morning (in `before_step`, or by the recorder
before the first offer), because the means of exogenous quantities are over the days it has seen. An attribute that is
missing raises AttributeError, so that nobody trades with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from marlab.market.logs.daystate import HORIZON, LINES, SCALARS, DayState, from_mapping

Schedule = list[float]


class Reader:
    """Reads the mornings of one agent, in order."""

    def __init__(self) -> None:
        self._initial_balance: float | None = None
        self._days = 0
        self._exogenous_in = 0.0
        self._exogenous_out = 0.0
        self._reach = [0] * LINES

    def read(self, awi: Any, horizon: int = HORIZON) -> DayState:
        """This morning as a DayState with schedules [horizon + 1]."""
        scalars, schedules, reach = self.values(awi, horizon)
        q_in, q_out, pay, receive = schedules
        more = {"q_in": q_in, "q_out": q_out, "pay": pay, "receive": receive, "exogenous_reach": reach}
        return from_mapping(dict(zip(SCALARS, scalars)) | more)

    def values(self, awi: Any, horizon: int) -> tuple[list[float], tuple[Schedule, ...], list[int]]:
        """The same as plain numbers, for the recorder: scalars in the order of SCALARS, schedules (q_in, q_out, pay,
        receive), and the days on which the exogenous quantity reached 1..10."""
        try:
            return self._values(awi, horizon)
        except AttributeError as error:
            lacks = f"The simulator does not tell an agent its {error.name!r}, which a DayState is made of"
            why = f"{lacks}; scml 0.8.4 does: install that version."
            raise AttributeError(why, name=error.name, obj=error.obj) from error

    def _values(self, awi: Any, horizon: int) -> tuple[list[float], tuple[Schedule, ...], list[int]]:
        day = awi.current_step
        balance = float(awi.current_balance)
        if self._initial_balance is None:
            self._initial_balance = balance
        initial = self._initial_balance
        inside, outside = awi.current_exogenous_input_quantity, awi.current_exogenous_output_quantity
        self._see(inside, outside)
        profile, prices = awi.profile, awi.trading_prices
        first, last = awi.is_first_level, awi.is_last_level
        score = balance / initial if initial else balance  # the simulator's own, which is dear to ask for
        scalars: list[float] = [
            day, awi.n_steps, profile.n_lines, awi.n_products, profile.input_product, profile.output_product,
            awi.n_input_negotiations, awi.n_output_negotiations, awi.horizon, profile.cost,
            balance, initial, score, awi.current_inventory_input, awi.current_inventory_output,
            float(prices[profile.input_product]), float(prices[profile.output_product]),
            awi.current_storage_cost, awi.current_shortfall_penalty, awi.current_disposal_cost,
            awi.needed_supplies, awi.needed_sales,
            inside, awi.current_exogenous_input_price, outside, awi.current_exogenous_output_price,
            self._exogenous_in / self._days, self._exogenous_out / self._days,
            *_ranges(None if first else awi.current_input_issues),
            *_ranges(None if last else awi.current_output_issues),
        ]  # fmt: skip
        slots = horizon + 1
        schedules = (
            _schedule(awi.supplies, awi.future_supplies, day, slots),
            _schedule(awi.sales, awi.future_sales, day, slots),
            _schedule(awi.supplies_cost, awi.future_supplies_cost, day, slots),
            _schedule(awi.sales_cost, awi.future_sales_cost, day, slots),
        )
        return scalars, schedules, list(self._reach)

    def _see(self, inside: float, outside: float) -> None:
        """Count one more day and its exogenous quantities."""
        self._days += 1
        self._exogenous_in += inside
        self._exogenous_out += outside
        for k in range(min(int(inside + outside), LINES)):
            self._reach[k] += 1


def reports_of(awi: Any, day: int) -> dict[str, float]:
    """Cash of all factories in the public reports of a day, by agent id; most days have none."""
    reports = awi.bb_read("reports_time", str(day)) or {}
    return {name: float(report.cash) for name, report in reports.items()}


def without_bankrupt(awi: Any, state: DayState) -> DayState:
    """The morning without sales to bankrupt buyers: the simulator still lists them, but nothing is delivered."""
    sold, paid = np.zeros_like(state.q_out), np.zeros_like(state.q_out)
    gone = [partner for partner in awi.my_consumers if awi.is_bankrupt(partner)]
    later = {int(state.day): (awi.sales, awi.sales_cost)}
    later |= {when: (units, awi.future_sales_cost.get(when, {})) for when, units in awi.future_sales.items()}
    for when, (units, money) in later.items():
        slot = when - int(state.day)
        if 0 <= slot <= state.horizon:
            sold[slot] = sum(units.get(partner, 0) for partner in gone)
            paid[slot] = sum(money.get(partner, 0) for partner in gone)
    return state.with_signed(0 * sold, 0 * sold, -sold, -paid) if sold.any() else state


def _ranges(issues: Any) -> tuple[float, ...]:
    """Least and largest quantity, unit price and day of a market; zeros where the agent does not negotiate."""
    if issues is None:
        return (0.0,) * 6
    quantity, day, price = issues
    return tuple(bound for issue in (quantity, price, day) for bound in (issue.min_value, issue.max_value))


def _schedule(today: Mapping[str, float], later: Mapping[int, Mapping[str, float]], day: int, slots: int) -> Schedule:
    """Totals over partners by days from today, cut after `slots` days."""
    totals = [0.0] * slots
    totals[0] = float(sum(today.values()))
    for when, partners in later.items():
        if when - day < slots:
            totals[when - day] = float(sum(partners.values()))
    return totals
