"""Which worlds are played: shapes and populations that take turns, so that any number of them covers all kinds."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace

from marlab.lab.errors import UserError
from marlab.market.simulator.experts import have_entrants
from marlab.market.simulator.seating import OURS, processes_of
from marlab.market.simulator.worlds import WorldSpec

RULE_WORLDS = "rule W"
LEVELS = (
    ("RandomStdAgent",),
    ("SyncRandomStdAgent",),
    ("GreedyStdAgent", "SyncRandomStdAgent"),
    ("SyncRandomStdAgent", "GreedyStdAgent"),
)
"""Agents by level, from the last one on, whose array versions are compared: Greedy only beside partners that decide
jointly, because only then its negotiations keep step with each other in the simulator."""
SYNC, ONE_AT_A_TIME = "jointly", "one at a time"
"""Agents that decide on all their negotiations together, and agents that answer each by itself."""


def populations() -> dict[str, tuple[str, ...]]:
    """Who plays, by the name of the population; the first ones decide jointly, all of them."""
    sync = ("SyncRandomStdAgent",)
    found = {"SyncRandom": sync, RULE_WORLDS: (OURS,), "rule W and SyncRandom": (OURS, *sync)}
    entrants = ("PenguinAgent", "AS0", "CautiousStdAgent")
    if have_entrants():
        found["entrants"] = (*entrants, *sync)
    found |= {
        "Random": ("RandomStdAgent",),
        "Greedy": ("GreedyStdAgent",),
        "all built-ins": ("GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent"),
    }
    if have_entrants():
        found["entrants and Random"] = (*entrants, "COW", "RandomStdAgent")
    return found


def planned(count: int, days: tuple[int, int], seed: int, chosen: Sequence[str] = ()) -> list[tuple[str, WorldSpec]]:
    """(population, world) for each world to be played; `chosen`: populations that take turns, by default all."""
    draw = random.Random(f"verify {seed}")
    names = populations()
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise UserError(f"There is no population '{unknown[0]}' here, expected some of: {', '.join(names)}.")
    turns = list(chosen) or list(names)
    specs = []
    for i in range(count):
        name = turns[i % len(turns)]
        processes = shape(draw, (2, 4), (3, 8))
        agents = tuple(draw.choice(names[name]) for _ in processes)
        specs.append((name, _named(name, spec_of("", draw, processes, agents, draw.randint(*days)))))
    return specs


def _named(name: str, spec: WorldSpec) -> WorldSpec:
    """The world with an id that says who plays, and that no other world has."""
    digest = hashlib.sha256(json.dumps(spec.to_dict(), sort_keys=True).encode()).hexdigest()[:10]
    return replace(spec, world_id=f"{name.replace(' ', '_')}-{digest}")


def by_level(agents: tuple[str, ...], count: int, days: int, seed: int) -> list[WorldSpec]:
    """Worlds of 3 x 4 factories; the last level is played by the first agent, the others take turns upstream."""
    draw = random.Random(f"{' '.join(agents)} {seed}")
    processes = processes_of((4, 4, 4))
    seated = tuple(agents[(2 - level) % len(agents)] for level in processes)
    return [spec_of(f"{'-'.join(agents)}-{seed}-{i:04d}", draw, processes, seated, days) for i in range(count)]


def shape(draw: random.Random, levels: tuple[int, int], factories: tuple[int, int]) -> tuple[int, ...]:
    """The level of every factory of a world."""
    return processes_of(draw.randint(*factories) for _ in range(draw.randint(*levels)))


def spec_of(
    world_id: str, draw: random.Random, processes: tuple[int, ...], agents: tuple[str, ...], days: int
) -> WorldSpec:
    """A world with seeds of its own."""
    market, play = draw.randrange(2**31), draw.randrange(2**31)
    return WorldSpec(world_id, market, play, days, processes, agents, (True,) * len(agents))
