"""Configs that the simulator draws, and worlds that it played as the vector market replays them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from marlab.market.simulator.record import exogenous_of, factories, record_world
from marlab.market.simulator.settlement import economy_of
from marlab.market.simulator.worlds import WorldSpec, make_world
from marlab.market.vector.configs import Configs, of_factories
from marlab.market.vector.replay import Recorded


def config_of(world: Any) -> Configs:
    """What this world gave to its factories, as a batch of one."""
    names = factories(world)
    economy = economy_of(world, names)
    return of_factories(
        economy.level, economy.lines, economy.cost.astype(np.int64), economy.balance, economy.storage,
        economy.shortfall, economy.catalogue.astype(np.int64), exogenous_of(world, names), f"World {world.name}",
    )  # fmt: skip


def draw_config(spec: WorldSpec, folder: Path) -> Configs:
    """The config that the simulator draws for this world; nobody plays. `folder`: where it may leave its files."""
    return config_of(make_world(spec, folder))


def played(spec: WorldSpec) -> Recorded:
    """Play a world in which everybody is tracked."""
    return Recorded.of(record_world(replace(spec, tracked=(True,) * len(spec.agents))))
