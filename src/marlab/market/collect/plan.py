"""Which worlds a collection plays: configs of official shape, competitor sets, fair assignments, repeated runs.

A config is a market without competitors: levels, days, how many factories of each level are for competitors, and which
built-in agents fill the rest. A set of K competitors rotates over the competitors' places, so that within K worlds
everybody has sat everywhere. Specs are made one at a time: a plan of a hundred thousand worlds takes no memory.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from marlab.lab.checks import at_least, positive
from marlab.lab.errors import UserError
from marlab.market.simulator.experts import FILLERS, PENGUIN, full_name, roster
from marlab.market.simulator.worlds import MAX_FACTORIES, MIN_FACTORIES, WorldSpec

MAX_SETS = 1_000_000
MOST = {"seats": 100, "configs": 100_000, "runs": 1_000_000, "days": 10_000, "processes": 100, "steps": 10_000}
"""Bounds of what can be meant. A plan is drawn up before anything is played, so they also bound its memory."""
OPTIONAL_COUNTS = ("n_competitors_per_world", "max_worlds_per_config", "target_worlds")


def check_range(name: str, values: tuple[int, int], least: int) -> None:
    """Refuse a range that begins too low or is written backwards."""
    low, high = values
    if not least <= low <= high:
        raise UserError(f"{name} is {low} to {high}, expected {least} or more and the smaller number first.")
    if high > MOST[name]:
        raise UserError(f"{name} is {low} to {high}, expected at most {MOST[name]}.")


@dataclass(frozen=True)
class MarketCollectConfig:
    """Which worlds to play, and what to record of them."""

    experts: tuple[str, ...] = ()
    """Competitors, by name or as module:Class, with parameters as Name(key=value, ...); default: the roster of
    LitaAgents, the best of 2025 and 2024, and two built-in agents."""
    configs: int = 20
    """Different markets."""
    runs: int = 2
    """Times that every world is played, with other random numbers."""
    max_top_2025: int = 5
    """Most entrants of 2025 in the default roster."""
    max_top_2024: int = 5
    """Most entrants of 2024 in the default roster."""
    n_competitors_per_world: int | None = None
    """K, the competitors in one world; default: all of them."""
    max_worlds_per_config: int | None = None
    """Assignments of each competitor set to the places of a config; default: K. At least K, or it would be unfair."""
    target_worlds: int | None = None
    """At least this many worlds: sets the assignments per config instead of max-worlds-per-config (needs K)."""
    round_robin: bool = True
    """All sets of K competitors; otherwise each competitor is in one set, drawn at random."""
    seats: int = 1
    """Factories of each competitor in one world."""
    steps: int | None = None
    """Days of every world; default: drawn from `days`."""
    days: tuple[int, int] = (50, 200)
    """Fewest and most days of a world."""
    processes: tuple[int, int] = (2, 4)
    """Fewest and most levels of the supply chain."""
    fillers: tuple[str, ...] = field(default=FILLERS)
    """Agents that fill the factories which competitors leave."""
    track_only_penguin: bool = False
    """Record only PenguinAgent's decisions, and put it into every world."""
    world_timeout: float = 1800.0
    """Seconds after which a world is ended and counted as failed."""
    seed: int = 42
    """Seed of everything random."""

    def __post_init__(self) -> None:
        given = [name for name in OPTIONAL_COUNTS if getattr(self, name) is not None]
        at_least(self, 1, "configs", "runs", "seats", *given)
        for name in ("seats", "configs", "runs", "steps"):
            if (getattr(self, name) or 0) > MOST[name]:
                raise UserError(f"{name} is {getattr(self, name)}, expected at most {MOST[name]}.")
        check_range("days", self.days, 5)
        check_range("processes", self.processes, 2)
        shortest = self.steps or self.days[0]
        if shortest <= self.processes[1]:
            raise UserError(f"A world of {shortest} days is too short for {self.processes[1]} levels.")
        if not 0 <= self.max_top_2025 <= 5 or not 0 <= self.max_top_2024 <= 5:
            raise UserError(
                f"max_top_2025 is {self.max_top_2025} and max_top_2024 is {self.max_top_2024}, expected 0 to 5 (the "
                "roster knows five of each year)."
            )
        positive(self, "world_timeout")
        if not self.fillers:
            raise UserError("fillers is empty; levels without a competitor need somebody, such as GreedyStdAgent.")
        if self.target_worlds is not None and self.n_competitors_per_world is None:
            raise UserError(
                "target_worlds needs n_competitors_per_world: the number of worlds per set follows from it."
            )
        if self.target_worlds is not None and self.max_worlds_per_config is not None:
            raise UserError("target_worlds and max_worlds_per_config say the same thing; give one of them.")


class Market(NamedTuple):
    """A config: everything but the competitors."""

    seed: int
    n_steps: int
    places: tuple[int, ...]  # factories for competitors, by level
    fillers: tuple[tuple[str, ...], ...]  # by level


def draw_market(
    rng: np.random.Generator,
    competitors: int,
    processes: tuple[int, int],
    days: int | tuple[int, int],
    fillers: Sequence[str],
) -> Market:
    """The league's rule: places for competitors and fillers are spread at random, four to six factories a level."""
    levels = int(rng.integers(processes[0], processes[1] + 1))
    n_steps = days if isinstance(days, int) else int(rng.integers(days[0], days[1] + 1))
    even = np.full(levels, 1 / levels)
    places = rng.multinomial(competitors, even)
    filling = rng.multinomial(levels * MIN_FACTORIES, even)
    filling = np.maximum(filling, MIN_FACTORIES - places)
    crowded = (places + filling > MAX_FACTORIES) & (filling > 1)
    filling = np.where(crowded, np.maximum(1, MIN_FACTORIES - places), filling)
    filled = tuple(tuple(fillers[i] for i in rng.integers(0, len(fillers), n)) for n in filling)
    return Market(int(rng.integers(2**31)), n_steps, tuple(map(int, places)), filled)


class CollectionPlan:
    """The worlds of a collection, in order; iterating makes their specs."""

    def __init__(self, config: MarketCollectConfig) -> None:
        self.config = config
        names = list(dict.fromkeys(config.experts or roster(config.max_top_2025, config.max_top_2024)))
        if config.track_only_penguin and PENGUIN not in names:
            names.insert(0, PENGUIN)
        self.experts = [full_name(name) for name in names]
        self.penguin = self.experts[names.index(PENGUIN)] if PENGUIN in names else None
        self._fillers = tuple(full_name(name) for name in config.fillers)
        self.k = config.n_competitors_per_world or len(self.experts)
        if self.k > len(self.experts):
            raise UserError(f"n_competitors_per_world is {self.k}, but there are only {len(self.experts)} competitors.")
        self.n_sets = self._count_sets()
        self.assignments = self._count_assignments()
        self.markets = [self._draw_market(number) for number in range(config.configs)]

    def __len__(self) -> int:
        return self.config.configs * self.config.runs * self.n_sets * self.assignments

    @property
    def total_days(self) -> int:
        """Simulated days of all worlds together."""
        return sum(market.n_steps for market in self.markets) * (len(self) // len(self.markets))

    @property
    def factory_days(self) -> int:
        """Days times factories, which the cost follows roughly."""
        filled = [m.n_steps * (sum(m.places) + sum(map(len, m.fillers))) for m in self.markets]
        return sum(filled) * (len(self) // len(self.markets))

    def __iter__(self) -> Iterator[WorldSpec]:
        """Every set and market appears early, so that a collection stopped half-way is still balanced."""
        for run in range(self.config.runs):
            for turn in range(self.assignments):
                for number, group in enumerate(self._sets()):
                    for market in range(len(self.markets)):
                        yield self._spec(market, number, group, turn, run)

    def _count_sets(self) -> int:
        n, k = len(self.experts), self.k
        if not self.config.round_robin:
            return math.ceil(n / k)
        sets = math.comb(n - 1, k - 1) if self.config.track_only_penguin else math.comb(n, k)
        if sets > MAX_SETS:
            raise UserError(f"There are {sets:,} sets of {k} out of {n} competitors; use --no-round-robin.")
        return sets

    def _sets(self) -> Iterator[tuple[str, ...]]:
        if self.config.round_robin:
            if self.config.track_only_penguin:
                others = [name for name in self.experts if name != self.penguin]
                assert self.penguin is not None
                return ((self.penguin, *rest) for rest in itertools.combinations(others, self.k - 1))
            return itertools.combinations(self.experts, self.k)
        return iter(self._partition)

    @functools.cached_property
    def _partition(self) -> list[tuple[str, ...]]:
        """Every competitor in one set, the last one completed with others; Penguin in all of them if it must be."""
        rng = np.random.default_rng([self.config.seed, 2])
        order = [self.experts[i] for i in rng.permutation(len(self.experts))]
        groups = [order[i : i + self.k] for i in range(0, len(order), self.k)]
        groups[-1] += [name for name in order if name not in groups[-1]][: self.k - len(groups[-1])]
        if self.config.track_only_penguin and self.penguin is not None:
            groups = [group if self.penguin in group else [self.penguin, *group[1:]] for group in groups]
        return [tuple(group) for group in groups]

    def _count_assignments(self) -> int:
        config = self.config
        wanted = config.max_worlds_per_config or self.k
        if config.target_worlds is not None:
            wanted = math.ceil(config.target_worlds / (config.configs * config.runs * self.n_sets))
            return max(1, math.ceil(wanted / self.k)) * self.k  # whole rotations, so the target is reached fairly
        if wanted < self.k:
            raise UserError(
                f"Cannot guarantee fair assignment: max_worlds_per_config is {wanted}, expected at least "
                f"{self.k}, the number of competitors in a world."
            )
        return wanted // self.k * self.k

    def _draw_market(self, number: int) -> Market:
        config, rng = self.config, np.random.default_rng([self.config.seed, 0, number])
        return draw_market(rng, self.k * config.seats, config.processes, config.steps or config.days, self._fillers)

    def _spec(self, market: int, number: int, group: tuple[str, ...], turn: int, run: int) -> WorldSpec:
        shape = self.markets[market]
        seats = self._seated(market, number, group, turn)
        agents: list[str] = []
        tracked: list[bool] = []
        levels: list[int] = []
        for level, (places, fillers) in enumerate(zip(shape.places, shape.fillers)):
            here = [seats.pop() for _ in range(places)]
            agents += [*here, *fillers]
            only = self.config.track_only_penguin
            tracked += [name == self.penguin if only else True for name in here] + [False] * len(fillers)
            levels += [level] * (places + len(fillers))
        seed = int(np.random.default_rng([self.config.seed, 1, market, number, turn, run]).integers(2**31))
        world = (shape.seed, seed, shape.n_steps, tuple(levels), tuple(agents), tuple(tracked))
        digest = hashlib.sha256(json.dumps(world).encode()).hexdigest()[:8]
        return WorldSpec(f"c{market:03d}-s{number:03d}-a{turn:03d}-r{run}-{digest}", *world)

    def _seated(self, market: int, number: int, group: tuple[str, ...], turn: int) -> list[str]:
        """Who sits in which competitor's place: a rotation per turn, around an order drawn for every K turns."""
        cycle, shift = divmod(turn, self.k)
        rng = np.random.default_rng([self.config.seed, 3, market, number, cycle])
        order = [group[i] for i in rng.permutation(self.k)]
        slots = rng.permutation(np.repeat(np.arange(self.k), self.config.seats))
        return [order[(slot + shift) % self.k] for slot in slots]
