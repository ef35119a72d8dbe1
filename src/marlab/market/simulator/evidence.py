"""What the simulator shows to the vector market: configs it drew, and worlds it played, in full.

`config_of` reads what a world of the simulator gave to its factories. `played` plays a world and keeps its log together
with the balances, stocks and prices of every day, so that `marlab.market.vector.replay` can be held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from negmas.sao import SAOSyncController
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.logs.worldlog import WorldLog
from marlab.market.simulator.record import RecordedWorld, Recording
from marlab.market.simulator.settlement import economy_of
from marlab.market.simulator.worlds import WorldSpec, make_world, playing
from marlab.market.vector.configs import Configs, check
from marlab.market.vector.replay import TABLES, Recorded


def names_of(world: Any) -> list[str]:
    """Ids of the factories, level by level."""
    return list(world.agent_profiles)


def config_of(world: Any) -> Configs:
    """What this world gave to its factories, as a batch of one."""
    names = names_of(world)
    economy = economy_of(world, names)
    if np.ptp(economy.storage, axis=1).max() > 0:
        raise UserError(f"World {world.name} changes its storage costs from day to day; configs keep one number each.")
    levels, days = economy.last_level + 1, economy.n_steps
    sizes = np.bincount(economy.level, minlength=levels)
    wide = int(sizes.max())
    place = np.concatenate([np.arange(size) for size in sizes])

    def by_seat(values: NDArray[Any]) -> NDArray[Any]:
        out = np.zeros((1, levels, wide, *values.shape[1:]), values.dtype)
        out[0, economy.level, place] = values
        return out

    config = Configs(
        np.array([levels]), np.array([days]), sizes[None], by_seat(economy.lines),
        by_seat(economy.cost.astype(np.int64)), by_seat(economy.balance), by_seat(economy.storage[:, 0]),
        by_seat(economy.shortfall), economy.catalogue.astype(np.int64)[None], *_exogenous(world, names, place, days),
    )  # fmt: skip
    check(config, f"World {world.name}")
    return config


def _exogenous(world: Any, names: list[str], place: NDArray[Any], days: int) -> Sequence[NDArray[Any]]:
    """Units and unit prices [1, A, T] of supplies, then of demand."""
    index = {name: f for f, name in enumerate(names)}
    out = [np.zeros((1, int(place.max()) + 1, days), np.int64) for _ in range(4)]
    for day, contracts in world.exogenous_contracts.items():
        for contract in contracts:
            note, terms = contract.annotation, contract.agreement
            supplied = note["buyer"] in index
            at = (0, place[index[note["buyer" if supplied else "seller"]]], day)
            units, price = out[:2] if supplied else out[2:]
            if units[at]:
                raise UserError(f"World {world.name} has two exogenous contracts for one factory and day.")
            units[at], price[at] = terms["quantity"], terms["unit_price"]
    return out


def draw_config(spec: WorldSpec, folder: Path) -> Configs:
    """The config that the simulator draws for this world; nobody plays. `folder`: where it may leave its files."""
    return config_of(make_world(spec, folder))


class ShownWorld(RecordedWorld):
    """A recorded world that also keeps the state of every evening."""

    def simulation_step(self, stage: int = 0) -> None:
        """Before the first day and after every settlement."""
        super().simulation_step(stage)
        if self.recording is not None and (stage == 1 or self.current_step == 0):
            self._keep()

    def _keep(self) -> None:
        if not hasattr(self, "shown"):
            self.shown: list[tuple[list[float], ...]] = []
        names = names_of(self)
        balance = [float(self.current_balance(name)) for name in names]
        stock = [float(self._inventory_input[name]) for name in names]
        self.shown.append((balance, stock, [float(price) for price in self.trading_prices]))


def played(spec: WorldSpec, look: Callable[[Any, Sequence[str]], None] | None = None) -> Recorded:
    """Play a world and keep everything; all agents are tracked.

    `look` is shown the world after its end, and the classes of its agents.
    """
    spec = replace(spec, tracked=(True,) * len(spec.agents))
    with playing(spec, ShownWorld) as world:
        config = config_of(world)
        world.recording = Recording(world, spec)
        world.run()
        log = world.recording.log(world)
        names = [agent["id"] for agent in log.agents]
        balance, stock, prices = (np.array(series) for series in zip(*world.shown))
        sync = all(isinstance(world.agents[name].adapted_object, SAOSyncController) for name in names)
        if log.meta["days_played"] != spec.n_steps or len(balance) != spec.n_steps + 1:
            raise UserError(f"World {spec.world_id} ended on day {log.meta['days_played']} of {spec.n_steps}.")
        kinds = tuple(agent["type"] for agent in log.agents)
        if look is not None:
            look(world, kinds)
        return Recorded(
            spec.world_id, config, sync, {name: log.tables[name] for name in TABLES}, balance, stock, prices,
            np.array([agent["score"] for agent in log.agents]), np.array([agent["bankrupt"] for agent in log.agents]),
            _mornings(log, len(names)), kinds,
        )  # fmt: skip


def _mornings(log: WorldLog, factories: int) -> NDArray[np.float64]:
    """[T, F, fields] every DayState with its fields one after the other; schedules reach as far as deliveries."""
    horizon = int(log.meta["league_horizon"])
    days = [log.agent(f, horizon).days for f in range(factories)]
    return np.stack([np.concatenate([v.reshape(len(v), -1) for v in state], 1) for state in days], 1)
