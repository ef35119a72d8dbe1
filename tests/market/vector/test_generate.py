"""Fresh markets beside the 200 shipped ones, which the simulator drew: every field, for the same shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from marlab.lab.errors import UserError
from marlab.market.vector.configs import Configs, check, shipped
from marlab.market.vector.generate import generate, generate_like

Measure = Callable[[Configs, int], float]


def seats(configs: Configs, w: int) -> np.ndarray:
    return configs.exists[w]


def units(configs: Configs, w: int, side: str) -> np.ndarray:
    """[factories, days] of one world."""
    level = 0 if side == "supply" else configs.n_levels[w] - 1
    return getattr(configs, f"{side}_units")[w, : configs.sizes[w, level], : configs.n_steps[w]]


def prices(configs: Configs, w: int, side: str) -> np.ndarray:
    there = units(configs, w, side) > 0
    return getattr(configs, f"{side}_price")[w, : len(there), : there.shape[1]][there]


def steadiness(values: np.ndarray) -> float:
    """How much of the spread of single quantities lies between factories: high where shares are predictable."""
    return float(values.mean(1).var() / max(values.var(), 1e-9))


def last_of(configs: Configs, w: int, values: np.ndarray) -> np.ndarray:
    return values[w, configs.n_levels[w] - 1, : configs.sizes[w, configs.n_levels[w] - 1]]


MEASURES: dict[str, Measure] = {
    "cost": lambda c, w: c.cost[w][seats(c, w)].mean(),
    "cost of the last level": lambda c, w: last_of(c, w, c.cost).mean(),
    "dearest cost of the first level": lambda c, w: c.cost[w, 0].max(),
    "opening balance, first level": lambda c, w: c.balance[w, 0, 0] / c.n_steps[w],
    "opening balance, last level": lambda c, w: last_of(c, w, c.balance)[0] / c.n_steps[w],
    "storage": lambda c, w: c.storage[w][seats(c, w)].mean(),
    "storage of one factory": lambda c, w: c.storage[w, 0, 0],
    "shortfall": lambda c, w: c.shortfall[w, 0, 0, : c.n_steps[w]].mean(),
    "shortfall from day to day": lambda c, w: (
        c.shortfall[w, 0, 0, : c.n_steps[w]].std() / c.shortfall[w, 0, 0, : c.n_steps[w]].mean()
    ),
    "price of the first output": lambda c, w: c.catalogue[w, 1],
    "price of the last output": lambda c, w: c.catalogue[w, c.n_levels[w]],
    "supplies": lambda c, w: units(c, w, "supply").mean(),
    "supplies, largest": lambda c, w: units(c, w, "supply").max(),
    "supplies, days without": lambda c, w: (units(c, w, "supply") == 0).mean(),
    "supplies, spread of totals": lambda c, w: units(c, w, "supply").sum(0).std() / c.sizes[w, 0],
    "supplies, steadiness": lambda c, w: steadiness(units(c, w, "supply")),
    "supplies, price": lambda c, w: prices(c, w, "supply").mean(),
    "supplies, spread of prices": lambda c, w: prices(c, w, "supply").std(),
    "demand": lambda c, w: units(c, w, "demand").mean(),
    "demand, days without": lambda c, w: (units(c, w, "demand") == 0).mean(),
    "demand, steadiness": lambda c, w: steadiness(units(c, w, "demand")),
    "demand, price": lambda c, w: prices(c, w, "demand").mean() / c.catalogue[w, c.n_levels[w]],
    "demand, spread of prices": lambda c, w: prices(c, w, "demand").std() / prices(c, w, "demand").mean(),
}


@pytest.fixture(scope="module")
def both() -> tuple[Configs, Configs]:
    theirs = shipped()
    rows = np.tile(np.arange(len(theirs)), 3)
    ours = generate_like(theirs.n_levels[rows], theirs.sizes[rows], theirs.n_steps[rows], np.random.default_rng(0))
    return theirs, ours


@pytest.mark.parametrize("name", MEASURES)
def test_a_field_is_distributed_as_in_the_simulator(both: tuple[Configs, Configs], name: str) -> None:
    theirs, ours = ([float(MEASURES[name](c, w)) for w in range(len(c))] for c in both)
    assert stats.ks_2samp(theirs, ours).pvalue > 1e-3, (np.mean(theirs), np.mean(ours))


def test_what_is_demanded_can_be_supplied(both: tuple[Configs, Configs]) -> None:
    for configs in both:
        more = configs.demand_units.sum(1) - configs.supply_units.sum(1)
        assert more.max() <= 2 * configs.sizes.max()  # shares are rounded, factory by factory


def test_fresh_markets_are_markets_of_the_shapes_asked_for() -> None:
    configs = generate(40, np.random.default_rng(1), levels=(2, 3), factories=(1, 4), days=(5, 9))
    check(configs, "here")
    assert set(configs.n_levels) == {2, 3} and configs.n_steps.min() >= 5 and configs.n_steps.max() <= 9
    assert set(configs.sizes[:, 0]) == {1, 2, 3, 4} and (configs.sizes[configs.n_levels == 2, 2] == 0).all()
    again = generate(40, np.random.default_rng(1), levels=(2, 3), factories=(1, 4), days=(5, 9))
    np.testing.assert_array_equal(configs.demand_price, again.demand_price)


def test_impossible_shapes_are_refused() -> None:
    for bad in ({"levels": (1, 2)}, {"factories": (4, 3)}, {"days": (0, 5)}):
        with pytest.raises(UserError, match=next(iter(bad))):
            generate(1, np.random.default_rng(0), **bad)
