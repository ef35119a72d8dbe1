"""Which seats are played: selling factories of drawn markets, each of them by every seller in turn.

A population of other agents sits around the seat and is the same for all sellers, and so are the market and the random
numbers of the simulator: what differs between two worlds of a seat is the seller.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marlab.lab.checks import at_least, at_most
from marlab.lab.errors import UserError
from marlab.market.collect.plan import check_range
from marlab.market.simulator.experts import split_alias
from marlab.market.simulator.seating import EXPERTS, processes_of
from marlab.market.simulator.worlds import WorldSpec

RULE = "rule"
"""The seller that all others are compared with."""
_OURS = "LitaAgentHRL(mode=heuristic"
SELLERS = (
    f"rule={_OURS})",
    f"guide-L1={_OURS}, l1=guide, residual_off=True, op_head_off=True)",
    f"economic-L1={_OURS}, residual_off=True, op_head_off=True)",
    "imitation=LitaAgentHRL(mode=neural)",
    f"no-waiting={_OURS}, rule={{'wait': False}})",
    f"lowest-price={_OURS}, rule={{'price': 'lowest'}})",
    f"highest-price={_OURS}, rule={{'price': 'highest'}})",
    f"lots-of-1={_OURS}, rule={{'lot': 1}})",
)
"""Four that differ coarsely from each other, and four that differ from the rule in one respect each."""
POPULATION = tuple(name for name in EXPERTS if name != "PenguinAgent")
"""The reference population without PenguinAgent, whose seats are played."""
SHAPES = ((6, 6), (4, 4, 4), (3, 3, 3, 3))
"""Factories by level, in turn from config to config."""
POSITIONS = ("first", "middle")


@dataclass(frozen=True)
class FidelityConfig:
    """Who sells, among whom, in which markets."""

    sellers: tuple[str, ...] = SELLERS
    """Sellers as name=AGENT; one is called `rule`, and the others are compared with it."""
    population: tuple[str, ...] = POPULATION
    """Eleven agents around the seat."""
    configs: int = 24
    """Different markets: 2 x 6, 3 x 4 and 4 x 3 factories in turn."""
    seats: int = 4
    """Seats of a market that are played: at the first level, and where there is a middle all but one of them there."""
    first_config: int = 500
    """Number of the first market; other numbers are other markets."""
    days: int = 50
    """Days of a world."""
    repeats: int = 32
    """Plays of each seat in the vector market, where the others draw their answers anew."""
    seed: int = 42
    """Seed of everything random."""

    def __post_init__(self) -> None:
        at_least(self, 2, "configs")
        at_least(self, 1, "seats", "repeats")
        at_least(self, 0, "first_config")
        at_most(self, 10_000, "configs", "repeats")
        check_range("days", (self.days, self.days), 5)
        names = [split_alias(seller)[0] for seller in self.sellers]
        if "" in names or len(set(names)) < len(names) or RULE not in names or len(names) < 2:
            raise UserError(f"sellers are {', '.join(names)}; each needs a name of its own, one of them '{RULE}'.")
        around = sum(SHAPES[0]) - 1
        if len(self.population) != around:
            raise UserError(f"The population has {len(self.population)} agents, expected {around}.")
        if self.seats > SHAPES[0][0]:
            raise UserError(f"seats is {self.seats}, expected at most {SHAPES[0][0]}.")

    @property
    def names(self) -> list[str]:
        """The sellers' names, the rule first."""
        names = [split_alias(seller)[0] for seller in self.sellers]
        return [RULE, *(name for name in names if name != RULE)]

    def agent(self, name: str) -> str:
        """What a seller plays: an agent that the simulator can make."""
        return next(agent for alias, agent in map(split_alias, self.sellers) if alias == name)


class Seat(NamedTuple):
    """A selling factory of a drawn market, and who sits around it."""

    config: int
    market_seed: int
    seed: int
    sizes: tuple[int, ...]  # factories by level
    days: int
    place: int  # counted over all factories, level by level
    around: tuple[str, ...]  # the other agents, in order of their places

    @property
    def level(self) -> int:
        """The seat's level, from 0."""
        return int(np.searchsorted(np.cumsum(self.sizes), self.place, side="right"))

    @property
    def position(self) -> str:
        """first or middle."""
        return POSITIONS[int(self.level > 0)]

    def agents(self, seller: str) -> tuple[str, ...]:
        """Everybody, with this seller in the seat."""
        return (*self.around[: self.place], seller, *self.around[self.place :])

    def world(self, seller: str) -> WorldSpec:
        """The world of the simulator in which this seller has the seat."""
        levels = processes_of(self.sizes)
        agents = self.agents(seller)
        world = (self.market_seed, self.seed, self.days, levels, agents, (False,) * len(agents))
        digest = hashlib.sha256(json.dumps(world).encode()).hexdigest()[:10]
        return WorldSpec(f"c{self.config:03d}-p{self.place:02d}-{digest}", *world)


def seats_of(config: FidelityConfig) -> list[Seat]:
    """All seats, market by market."""
    return [seat for number in range(config.configs) for seat in _of_market(config, config.first_config + number)]


def _of_market(config: FidelityConfig, number: int) -> list[Seat]:
    rng = np.random.default_rng([config.seed, 20, number])
    sizes = SHAPES[number % len(SHAPES)]
    market_seed = int(rng.integers(2**31))
    first, selling = sizes[0], sum(sizes[:-1])
    at_first = config.seats if len(sizes) == 2 else 1
    places = [*rng.permutation(first)[:at_first], *(first + rng.permutation(selling - first))]
    around = [config.population[i] for i in rng.permutation(len(config.population))]
    return [
        Seat(number, market_seed, int(rng.integers(2**31)), sizes, config.days, int(place), _turned(around, turn))
        for turn, place in enumerate(places[: config.seats])
    ]


def _turned(around: Sequence[str], turn: int) -> tuple[str, ...]:
    """Everybody moves on, so that the neighbours of the seats differ."""
    by = 3 * turn % len(around)
    return (*around[by:], *around[:by])
