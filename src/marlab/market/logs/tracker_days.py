"""A morning as the tracker's `daily_status` event tells it: from a DayState, and back.

Trackers of others write fewer fields. What can be had from the rest of the file is taken from there; what cannot gets
the value the guide names. Either way it is counted in `missing`, under the name of the field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import LINES, SCALARS, SCHEDULES, DayState, fit_schedule, from_mapping
from marlab.market.logs.tracker_words import number, numbers, plain

SCHEMA_VERSION = 1
LEAGUE_HORIZON = 10
"""How far ahead a delivery may lie in the Standard league."""
LOT = 3
"""The largest quantity of an offer is this many days of full production."""
PRICE_WITHIN = 0.1
"""Offers lie within this share of the trading price."""
FALLBACK_PRICES = {"price_in": 10.0, "price_out": 20.0}
UNKNOWN_COST = 1.0
"""What the first trackers, which never wrote it, let their readers assume for `production_cost`."""

KEYS = {
    "day": "current_step", "input_product": "my_input_product", "output_product": "my_output_product",
    "price_in": "spot_price_in", "price_out": "spot_price_out",
    "needed_supplies": "needed_supplies_raw", "needed_sales": "needed_sales_raw",
    "exogenous_in_quantity": "exo_input_qty", "exogenous_in_price": "exo_input_price",
    "exogenous_out_quantity": "exo_output_qty", "exogenous_out_price": "exo_output_price",
}  # fmt: skip
"""DayState fields that have another name in `daily_status`; all others keep theirs."""
COMMITMENTS = {"q_in": "Q_in", "q_out": "Q_out", "pay": "Payables", "receive": "Receivables"}
ISSUES = ("quantity_min", "quantity_max", "price_min", "price_max", "day_min", "day_max")
Range = dict[str, float]
"""Bounds of one negotiation by the names in ISSUES; a bound that is not known is left out."""


def daily_status(days: DayState, row: int, trading_prices: list[float]) -> dict[str, Any]:
    """The event's data for one day of a batch. At `before_step` no offer is visible, so the snapshot is empty."""
    state = days.take(row)
    status: dict[str, Any] = {KEYS.get(name, name): plain(getattr(state, name)) for name in SCALARS}
    commitments = {key: [plain(v) for v in getattr(state, name)] for name, key in COMMITMENTS.items()}
    return status | {
        "schema_version": SCHEMA_VERSION,
        "trading_prices": trading_prices,
        "needed_supplies": max(0, status["needed_supplies_raw"]),
        "needed_sales": max(0, status["needed_sales_raw"]),
        "total_supplies": commitments["Q_in"][0],
        "total_sales": commitments["Q_out"][0],
        "exogenous_reach": [plain(v) for v in state.exogenous_reach],
        "commitments": commitments,
        "offers_snapshot": {"buy": [], "sell": []},
    }


@dataclass
class Surroundings:
    """What the rest of the file knows about mornings."""

    where: str  # the file, for messages
    game: Mapping[str, Any]  # data of `agent_initialized`
    suppliers: int
    consumers: int
    ranges: Mapping[tuple[int, str], Range] = field(default_factory=dict)  # of (day, "buy" or "sell")


def read_days(
    statuses: Iterable[tuple[int, Mapping[str, Any]]], around: Surroundings, horizon: int, missing: Counter[str]
) -> DayState:
    """A batch from the (day, data) of `daily_status` events, which come in the order of days."""
    rows: list[dict[str, Any]] = []
    for day, data in statuses:
        rows.append(_Morning(day, data, around, missing).fields(horizon, rows[0] if rows else None))
    _exogenous_past(rows, missing)
    return from_mapping({name: np.array([row[name] for row in rows], np.float64) for name in DayState._fields})


class _Morning:
    """One `daily_status`, read field by field; what was found so far is in `found`."""

    def __init__(self, day: int, data: Mapping[str, Any], around: Surroundings, missing: Counter[str]) -> None:
        self.data, self.around, self.missing = data, around, missing
        self.values: dict[str, Any] = {"day": float(day)}

    def fields(self, horizon: int, first: Mapping[str, Any] | None) -> dict[str, Any]:
        """Every field of DayState; the past of exogenous contracts may still be None. `first`: those of day one."""
        self._game()
        self._schedules(horizon)
        self._money(first)
        self._needs()
        for side in ("buy", "sell"):
            self._issues(side)
        for name in ("exogenous_in_mean", "exogenous_out_mean"):
            self.values[name] = self.stated(name)
        reach = numbers(self.data.get("exogenous_reach"))
        self.values["exogenous_reach"] = reach if reach is not None and len(reach) == LINES else None
        return self.values

    @property
    def first_level(self) -> bool:
        """Buys nothing from agents."""
        return bool(self.values["input_product"] == 0)

    @property
    def last_level(self) -> bool:
        """Sells nothing to agents."""
        return bool(self.values["output_product"] == self.values["n_products"] - 1)

    def stated(self, name: str) -> float | None:
        """What the event says, under the tracker's name or ours."""
        value = number(self.data.get(KEYS.get(name, name)))
        return number(self.data.get(name)) if value is None else value

    def need(self, name: str, *others: float | None) -> None:
        """A field without which a morning means nothing: from the event, or the first of `others` that is known."""
        value = self.stated(name)
        if value is None:
            self.missing[name] += 1
            value = next((other for other in others if other is not None), None)
        if value is None:
            raise self.cannot(KEYS.get(name, name))
        self.values[name] = value

    def cannot(self, key: str) -> UserError:
        """The file lacks what no rule replaces."""
        where = f"{self.around.where}, day {int(self.values['day'])}"
        return UserError(f"{where}: daily_status has no {key}, and without it the morning cannot be rebuilt.")

    def fill(self, name: str, instead: float) -> None:
        """A field that may be missing."""
        value = self.stated(name)
        if value is None:
            self.missing[name] += 1
            value = instead
        self.values[name] = value

    def _game(self) -> None:
        game = self.around.game
        prices = numbers(self.data.get("trading_prices")) or []
        self.need("n_steps", number(game.get("n_steps")))
        self.need("n_lines", number(game.get("n_lines")))
        self.need("input_product", number(game.get("level")))
        self.fill("output_product", self.values["input_product"] + 1)
        self.need("n_products", float(len(prices)) if prices else None)
        self.fill("n_suppliers", self.around.suppliers)
        self.fill("n_consumers", self.around.consumers)
        self.fill("league_horizon", LEAGUE_HORIZON)
        self.fill("production_cost", UNKNOWN_COST)
        for name, product in (("price_in", "input_product"), ("price_out", "output_product")):
            index = int(self.values[product])
            self.fill(name, prices[index] if 0 <= index < len(prices) else FALLBACK_PRICES[name])

    def _schedules(self, horizon: int) -> None:
        commitments = self.data.get("commitments")
        if not isinstance(commitments, Mapping):
            raise self.cannot("commitments")
        left = min(horizon + 1, int(self.values["n_steps"] - self.values["day"]))
        for name in SCHEDULES:
            slots = np.array(numbers(commitments.get(COMMITMENTS[name])) or [], np.float64)
            if slots.shape[0] < left:  # shorter than the rest of the game is a gap, not just the end of the game
                self.missing["commitments"] += name == "q_in"
            self.values[name] = fit_schedule(slots, horizon)

    def _money(self, first: Mapping[str, Any] | None) -> None:
        for name in ("balance", "inventory_input", "inventory_output"):
            self.need(name)
        balance = self.values["balance"]
        # the first morning's balance is the opening balance, whatever the tracker believed it to be
        opening = first["initial_balance"] if first else self.stated("initial_balance")
        if first is None and (self.values["day"] == 0 or not opening):
            self.missing["initial_balance"] += opening != balance
            opening = balance
        self.values["initial_balance"] = opening
        self.fill("score", balance / opening if opening else balance)
        for name in ("storage_cost", "shortfall_penalty", "disposal_cost"):
            self.fill(name, 0.0)

    def _needs(self) -> None:
        for side in ("in", "out"):
            self.fill(f"exogenous_{side}_quantity", 0.0)
            self.fill(f"exogenous_{side}_price", 0.0)
        values = self.values
        surplus = values["exogenous_in_quantity"] + values["inventory_input"] + values["q_in"][0]
        surplus -= values["exogenous_out_quantity"] + values["inventory_output"] + values["q_out"][0]
        self.fill("needed_supplies", 0.0 if self.first_level else -surplus)
        self.fill("needed_sales", 0.0 if self.last_level else surplus)

    def _issues(self, side: str) -> None:
        values = self.values
        if self.first_level if side == "buy" else self.last_level:  # no such negotiations, no issues
            values.update({f"{side}_{name}": self.stated(f"{side}_{name}") or 0.0 for name in ISSUES})
            return
        price = values["price_in"] if side == "buy" else values["price_out"]
        last = min(values["day"] + values["league_horizon"], values["n_steps"] - 1)
        prices = (1 - PRICE_WITHIN) * price, (1 + PRICE_WITHIN) * price
        usual = (1.0, LOT * values["n_lines"], *prices, values["day"], last)
        seen = self.around.ranges.get((int(values["day"]), side), {})
        for name, instead in zip(ISSUES, usual):
            self.fill(f"{side}_{name}", seen.get(name, instead))


def _exogenous_past(rows: list[dict[str, Any]], missing: Counter[str]) -> None:
    """Means and counts over the days seen so far, for files that do not tell them."""
    totals = {"in": 0.0, "out": 0.0}
    reach = np.zeros(LINES)
    for seen, row in enumerate(rows, 1):
        for side in totals:
            totals[side] += row[f"exogenous_{side}_quantity"]
            if row[f"exogenous_{side}_mean"] is None:
                missing[f"exogenous_{side}_mean"] += 1
                row[f"exogenous_{side}_mean"] = totals[side] / seen
        both = row["exogenous_in_quantity"] + row["exogenous_out_quantity"]
        reach = reach + (both >= np.arange(1, LINES + 1))
        if row["exogenous_reach"] is None:
            missing["exogenous_reach"] += 1
            row["exogenous_reach"] = reach
