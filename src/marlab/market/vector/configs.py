"""Configs: what a market gives to its factories before anybody trades, for many worlds of different shapes.

Arrays are in the natural order of levels (0 buys from the market) and padded with zeros. `save` and `load` keep them in
one small .npz file; `load` refuses whatever could not be a market. `shipped()` are 200 configs of the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_npz
from marlab.lab.runs.files import replacing

Array = NDArray[Any]
VERSION = 1
SHIPPED = Path(__file__).parents[1] / "shipped" / "configs.npz"
RATE_UNIT = 1e-5
"""Files keep rates in whole hundred-thousandths: a third of the size, and no decision turns on the sixth digit."""
MOST_LINES = 20
"""Quantities of an offer go up to three times the lines and are kept in six bits."""
_RATES = ("storage", "shortfall")


@dataclass(frozen=True)
class Configs:
    """Markets. N worlds, L levels, A factories of a level, T days: the largest of all worlds."""

    n_levels: Array  # [N]
    n_steps: Array  # [N], days
    sizes: Array  # [N, L], factories of each level
    lines: Array  # [N, L, A], units that can be produced in a day
    cost: Array  # [N, L, A], money per unit produced
    balance: Array  # [N, L, A], opening balance
    storage: Array  # [N, L, A], share of the input's trading price for each unit left on a day
    shortfall: Array  # [N, L, A, T], share of the output's trading price for each unit not delivered on a day
    catalogue: Array  # [N, L + 1], prices of products before the first trade
    supply_units: Array  # [N, A, T], exogenous supplies of the first level
    supply_price: Array  # [N, A, T], per unit
    demand_units: Array  # [N, A, T], exogenous demand from the last level
    demand_price: Array  # [N, A, T], per unit

    def __len__(self) -> int:
        return len(self.n_levels)

    @property
    def exists(self) -> NDArray[np.bool_]:
        """[N, L, A]: which places hold a factory."""
        return np.arange(self.lines.shape[2]) < self.sizes[..., None]

    def take(self, rows: Sequence[int] | Array) -> Configs:
        """Some of the worlds, in the order given (a world may be taken twice), without needless padding."""
        some = Configs(*(getattr(self, f.name)[np.asarray(rows, dtype=np.int64)] for f in fields(self)))
        levels, wide, days = int(some.n_levels.max()), int(some.sizes.max()), int(some.n_steps.max())
        return some.resized(levels, wide, days)

    def resized(self, levels: int, wide: int, days: int) -> Configs:
        """The same worlds in other shapes; what is cut off must be padding."""
        shapes = _shapes(len(self), levels, wide, days)
        return Configs(**{name: _fitted(getattr(self, name), shape) for name, shape in shapes.items()})


def _shapes(worlds: int, levels: int, wide: int, days: int) -> dict[str, tuple[int, ...]]:
    """The shape of every array."""
    outside = dict.fromkeys(("supply_units", "supply_price", "demand_units", "demand_price"), (worlds, wide, days))
    seats = dict.fromkeys(("lines", "cost", "balance", "storage"), (worlds, levels, wide))
    return {
        "n_levels": (worlds,), "n_steps": (worlds,), "sizes": (worlds, levels), **seats,
        "shortfall": (worlds, levels, wide, days), "catalogue": (worlds, levels + 1), **outside,
    }  # fmt: skip


def _fitted(values: Array, shape: tuple[int, ...]) -> Array:
    cut = values[tuple(slice(size) for size in shape)]
    out = np.zeros(shape, values.dtype)
    out[tuple(slice(size) for size in cut.shape)] = cut
    return out


def of_factories(
    level: Array, lines: Array, cost: Array, balance: Array, storage: Array, shortfall: Array, catalogue: Array,
    exogenous: Array, where: str,
) -> Configs:  # fmt: skip
    """One world from its F factories, level by level: `storage` and `shortfall` [F, T], `exogenous` [4, F, T] units and
    unit prices of supply, then of demand."""
    if len(storage) == 0 or np.ptp(storage, axis=1).max() > 0:
        raise UserError(f"{where} changes its storage costs from day to day; configs keep one number each.")
    sizes = np.bincount(level)
    place = np.concatenate([np.arange(size) for size in sizes])

    def by_seat(values: Array) -> Array:
        out = np.zeros((1, len(sizes), sizes.max(), *values.shape[1:]), values.dtype)
        out[0, level, place] = values
        return out

    last = len(sizes) - 1
    outside = [by_seat(values)[:, side] for values, side in zip(exogenous, (0, 0, last, last))]
    config = Configs(
        np.array([len(sizes)]), np.array([storage.shape[1]]), sizes[None], by_seat(lines), by_seat(cost),
        by_seat(balance), by_seat(storage[:, 0]), by_seat(shortfall), catalogue[None], *outside,
    )  # fmt: skip
    check(config, where)
    return config


def join(many: Sequence[Configs]) -> Configs:
    """All worlds of several configs in one, padded to the largest."""
    levels = max(int(c.n_levels.max()) for c in many)
    wide = max(int(c.sizes.max()) for c in many)
    days = max(int(c.n_steps.max()) for c in many)
    same = [c.resized(levels, wide, days) for c in many]
    return Configs(*(np.concatenate([getattr(c, f.name) for c in same]) for f in fields(Configs)))


def save(path: Path, configs: Configs) -> None:
    """Write them to `path`, by way of a temporary name. Padding compresses to nothing."""
    arrays: dict[str, Array] = {"version": np.array(VERSION)}
    for f in fields(configs):
        values = getattr(configs, f.name)
        if f.name in _RATES:
            arrays[f.name] = np.round(values / RATE_UNIT).astype(np.int32)
        else:
            arrays[f.name] = values.astype(np.int16 if np.abs(values).max(initial=0) < 2**15 else np.int32)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def load(path: Path) -> Configs:
    """Read configs; a file that is something else, or no market, raises UserError."""
    arrays = read_npz(path, "a file of market configs")
    version = arrays.pop("version", np.array(-1))
    if version.shape != () or version.dtype.kind not in "iu" or int(version) != VERSION:
        raise UserError(f"{path} is not a file of market configs of version {VERSION}: export it again.")
    names = {f.name for f in fields(Configs)}
    if set(arrays) != names:
        raise UserError(f"{path} has the arrays {sorted(arrays)}, expected {sorted(names)}.")
    for name, values in arrays.items():
        if values.dtype.kind not in "iuf":
            raise UserError(f"{path} is damaged: its {name} holds {values.dtype}, expected numbers.")
    for name in _RATES:
        arrays[name] = arrays[name] * RATE_UNIT
    wider = {name: v.astype(np.float64 if name in (*_RATES, "balance") else np.int64) for name, v in arrays.items()}
    configs = Configs(**wider)
    check(configs, str(path))
    return configs


def check(configs: Configs, where: str) -> None:
    """Raise UserError unless these are markets that can be played."""

    def need(right: Any, what: str) -> None:
        if not np.all(right):
            raise UserError(f"{where}: {what}.")

    need(configs.n_levels.ndim == 1 and len(configs) > 0, "no worlds")
    need(configs.shortfall.ndim == 4, "shortfall must have four axes: worlds, levels, factories, days")
    _, levels, wide, days = configs.shortfall.shape
    for name, wanted in _shapes(len(configs), levels, wide, days).items():
        got = getattr(configs, name).shape
        need(got == wanted, f"{name} has shape {got}, expected {wanted}")
    at = np.arange(levels)
    need((configs.n_levels >= 2) & (configs.n_levels <= levels), f"n_levels must be from 2 to {levels}")
    need((configs.n_steps >= 1) & (configs.n_steps <= days), f"n_steps must be from 1 to {days}")
    used = at < configs.n_levels[:, None]
    need(np.where(used, (configs.sizes >= 1) & (configs.sizes <= wide), configs.sizes == 0), "sizes do not fit levels")
    there = configs.exists
    need((configs.lines[there] >= 1) & (configs.lines[there] <= MOST_LINES), f"lines must be from 1 to {MOST_LINES}")
    need(configs.balance[there] > 0, "opening balances must be above 0")
    need(configs.cost[there] >= 0, "costs must be 0 or more")
    for name in _RATES:
        values = getattr(configs, name)
        need(np.isfinite(values) & (values >= 0), f"{name} must be 0 or more")
    products = np.arange(levels + 1) <= configs.n_levels[:, None]
    need(configs.catalogue[products] >= 1, "catalogue prices must be 1 or more")
    for name in ("supply_units", "supply_price", "demand_units", "demand_price"):
        need(getattr(configs, name) >= 0, f"{name} must be 0 or more")


def shipped() -> Configs:
    """200 configs that the simulator drew: 2 to 4 levels, 3 to 8 factories a level, 50 to 200 days."""
    return load(SHIPPED)
