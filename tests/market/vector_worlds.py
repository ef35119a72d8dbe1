"""Small configs and recorded worlds for the tests of the vector market."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.market.vector.configs import Configs
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded, read_folder
from marlab.market.vector.rounds import HALVES, OFFER, Moves
from marlab.market.vector.setup import make_setup

GOLDEN = Path(__file__).parents[1] / "golden" / "market" / "verify"


def recorded_worlds() -> list[Recorded]:
    """Seven worlds of the simulator, of `marlab market verify --worlds 7 --days 5 6 --seed 1 --keep FOLDER`."""
    return read_folder(GOLDEN)


def small_config(sizes: tuple[int, ...] = (1, 1), days: int = 3, **changes: Any) -> Configs:
    """One world; every factory has 10 lines, cost 2, balance 1000, rates .1 and .5; nothing from outside."""
    levels, wide = len(sizes), max(sizes)
    there = np.arange(wide) < np.array(sizes)[:, None]
    seats = {
        "lines": 10 * there,
        "cost": 2 * there,
        "balance": 1000.0 * there,
        "storage": 0.1 * there,
        "shortfall": 0.5 * there[..., None] * np.ones(days),
    }
    none = np.zeros((wide, days), np.int64)
    values = {
        "n_levels": np.array(levels), "n_steps": np.array(days), "sizes": np.array(sizes), **seats,
        "catalogue": np.array([10, 20, 30, 40, 50][: levels + 1]), "supply_units": none, "supply_price": none,
        "demand_units": none, "demand_price": none,
    }  # fmt: skip
    return Configs(**{name: np.asarray(value)[None] for name, value in (values | changes).items()})


def small_market(sizes: tuple[int, ...] = (1, 1), days: int = 3, **changes: Any) -> Market:
    return Market(make_setup(small_config(sizes, days, **changes), torch.float64))


def moves(market: Market, op: int = OFFER, units: int = 1, price: int = 0, ahead: int = 0) -> Moves:
    """The same move in all threads."""
    like = market.threads.units
    return Moves(*(torch.full_like(like, value) for value in (op, units, price, ahead)))


def sign(market: Market, units: int, price: int, ahead: int = 0) -> None:
    """A day on which every pair agrees on the same terms; call it between mornings."""
    market.open_day()
    market.move(moves(market, OFFER, units, price, ahead))
    market.move(moves(market, 0))
    assert market.half < HALVES
