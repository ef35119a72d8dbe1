"""Configs and days read from the simulator, beside the simulator's own numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scml")
from marlab.lab.errors import UserError
from marlab.market.simulator.evidence import config_of, draw_config, played
from marlab.market.simulator.record import factories
from marlab.market.simulator.worlds import WorldSpec, make_world

SPEC = WorldSpec("w", 3, 4, 6, (0, 0, 1, 1, 1), ("RandomStdAgent",) * 5, (False,) * 5)


def test_a_config_holds_what_the_world_gave(tmp_path: Path) -> None:
    world = make_world(SPEC, tmp_path)
    config, names = config_of(world), factories(world)
    assert config.n_levels == 2 and config.n_steps == 6 and config.sizes.tolist() == [[2, 3]]
    for f, (level, place) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]):
        profile = world.agent_profiles[names[f]]
        assert config.cost[0, level, place] == profile.cost and config.lines[0, level, place] == profile.n_lines
        assert config.balance[0, level, place] == world.initial_balances[names[f]]
        np.testing.assert_array_equal(config.shortfall[0, level, place], world.agent_shortfall_penalty[names[f]])
        assert config.storage[0, level, place] == profile.storage_cost_mean
    assert config.catalogue[0].tolist() == [int(price) for price in world.catalog_prices]
    exogenous = [c for contracts in world.exogenous_contracts.values() for c in contracts]
    bought = sum(c.agreement["quantity"] for c in exogenous if c.annotation["buyer"] in names)
    paid = sum(
        c.agreement["quantity"] * c.agreement["unit_price"] for c in exogenous if c.annotation["seller"] in names
    )
    assert config.supply_units.sum() == bought and (config.demand_units * config.demand_price).sum() == paid
    again = draw_config(SPEC, tmp_path)
    np.testing.assert_array_equal(again.shortfall, config.shortfall)


def test_two_exogenous_contracts_for_one_day_are_refused(tmp_path: Path) -> None:
    world = make_world(SPEC, tmp_path)
    world.exogenous_contracts[0].append(world.exogenous_contracts[0][0])
    with pytest.raises(UserError, match="two exogenous contracts"):
        config_of(world)


def test_a_played_world_keeps_every_evening() -> None:
    world = played(SPEC)
    assert world.balance.shape == (7, 5) and world.stock.shape == (7, 5) and world.prices.shape == (7, 3)
    np.testing.assert_allclose(world.scores, world.balance[-1] / world.balance[0])
    assert not world.sync and (world.stock[0] == 0).all() and (np.diff(world.stock, axis=0) >= 0).all()
    assert world.level.tolist() == [0, 0, 1, 1, 1] and world.place.tolist() == [0, 1, 0, 1, 2]
    assert len(world.tables["decisions"]["seq"]) > 20  # everybody is tracked
