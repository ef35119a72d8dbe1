"""Days to test with: one described by hand, or many at random."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from marlab.market.logs.daystate import HORIZON, LINES, SCALARS, SCHEDULES, Array, DayState, from_mapping


def schedule(entries: Mapping[int, float], horizon: int = HORIZON) -> Array:
    """A schedule [H+1] from its non-zero slots."""
    values = np.zeros(horizon + 1)
    for slot, value in entries.items():
        values[slot] = value
    return values


def a_day(horizon: int = HORIZON, **given: object) -> DayState:
    """A middle factory on day 10 of 100 with money and no stock; keyword arguments replace fields."""
    usual: dict[str, object] = {
        **dict.fromkeys(SCALARS, 0.0),
        **{name: np.zeros(horizon + 1) for name in SCHEDULES},
        "exogenous_reach": np.zeros(LINES),
        "day": 10,
        "n_steps": 100,
        "n_lines": 10,
        "n_products": 4,
        "input_product": 1,
        "output_product": 2,
        "n_suppliers": 4,
        "n_consumers": 4,
        "league_horizon": 10,
        "balance": 9000,
        "initial_balance": 9000,
        "price_in": 10,
        "price_out": 20,
    }
    usual.update(given)
    day = float(np.asarray(usual["day"]))
    last = min(day + 10, float(np.asarray(usual["n_steps"])) - 1)
    for side, price in (("buy", usual["price_in"]), ("sell", usual["price_out"])):
        price = float(np.asarray(price))
        bounds = {"quantity_min": 1, "quantity_max": 30, "price_min": max(1, int(0.9 * price))}
        bounds |= {"price_max": int(1.1 * price), "day_min": day, "day_max": last}
        for name, value in bounds.items():
            if f"{side}_{name}" not in given:
                usual[f"{side}_{name}"] = value
    return from_mapping(usual)


def random_days(count: int, seed: int, horizon: int = HORIZON) -> DayState:
    """A batch [N] of very different days: all levels, poor and rich, early and late, empty and full of contracts."""
    rng = np.random.default_rng(seed)
    whole = rng.integers
    products = whole(3, 6, count)
    level = whole(0, products - 1)
    n_steps = whole(5, 201, count)
    day = whole(0, n_steps)
    price_in, price_out = rng.uniform(1, 60, count), rng.uniform(1, 90, count)
    last = np.minimum(day + 10, n_steps - 1)
    values: dict[str, object] = {
        "day": day,
        "n_steps": n_steps,
        "n_lines": whole(1, 13, count),
        "n_products": products,
        "input_product": level,
        "output_product": level + 1,
        "n_suppliers": np.where(level > 0, whole(1, 9, count), 0),
        "n_consumers": whole(0, 9, count),
        "league_horizon": np.full(count, 10),
        "production_cost": whole(1, 20, count),
        "balance": rng.uniform(-2000, 60000, count),
        "initial_balance": rng.uniform(100, 60000, count),
        "score": rng.uniform(-1, 2, count),
        "inventory_input": whole(0, 60, count) * whole(0, 2, count),
        "inventory_output": whole(0, 6, count) * whole(0, 2, count),
        "price_in": price_in,
        "price_out": price_out,
        "storage_cost": rng.uniform(0.01, 0.05, count),
        "shortfall_penalty": rng.uniform(0.2, 1, count),
        "disposal_cost": np.zeros(count),
        "needed_supplies": whole(-20, 60, count),
        "needed_sales": whole(-20, 60, count),
        "exogenous_reach": np.sort(whole(0, 1 + day[:, None], (count, LINES)), -1)[:, ::-1],
        "exogenous_in_mean": rng.uniform(0, 10, count),
        "exogenous_out_mean": rng.uniform(0, 10, count),
    }
    for side, price in (("in", price_in), ("out", price_out)):
        quantity = whole(0, 25, count) * whole(0, 2, count)
        values[f"exogenous_{side}_quantity"] = quantity
        values[f"exogenous_{side}_price"] = quantity * np.rint(price)
    for side, price in (("buy", price_in), ("sell", price_out)):
        values |= {f"{side}_quantity_min": np.ones(count), f"{side}_quantity_max": np.full(count, 30)}
        values |= {f"{side}_price_min": np.maximum(1, np.floor(0.9 * price))}
        values |= {f"{side}_price_max": np.maximum(1, np.floor(1.1 * price))}
        values |= {f"{side}_day_min": day, f"{side}_day_max": last}
    for quantity, money, price in (("q_in", "pay", price_in), ("q_out", "receive", price_out)):
        filled = rng.random((count, horizon + 1)) < rng.random((count, 1)) * 0.6
        values[quantity] = whole(0, 31, (count, horizon + 1)) * filled
        values[money] = values[quantity] * np.rint(price)[:, None]
    return from_mapping(values)
