"""Which worlds are played: shapes and populations that take turns, so that any number of them covers all kinds."""

from __future__ import annotations

import random

from marlab.market.simulator.experts import have_entrants
from marlab.market.simulator.worlds import WorldSpec

OURS = 'marlab.market.agent.agent:LitaAgentHRL(mode="heuristic")'
RULE_WORLDS = "rule W"
LEVELS = (
    ("RandomStdAgent",), ("SyncRandomStdAgent",),
    ("GreedyStdAgent", "SyncRandomStdAgent"), ("SyncRandomStdAgent", "GreedyStdAgent"),
)  # fmt: skip
"""Agents by level, from the last one on, whose array versions are compared: Greedy only beside partners that decide
jointly, because only then its negotiations keep step with each other in the simulator."""
SYNC, ONE_AT_A_TIME = "jointly", "one at a time"
"""Agents that decide on all their negotiations together, and agents that answer each by itself."""


def populations() -> dict[str, tuple[str, ...]]:
    """Who plays, by the name of the population; the first ones decide jointly, all of them."""
    sync = ("SyncRandomStdAgent",)
    found = {"SyncRandom": sync, RULE_WORLDS: (OURS,), "rule W and SyncRandom": (OURS, *sync)}
    if have_entrants():
        found["entrants"] = ("PenguinAgent", "AS0", "CautiousStdAgent", *sync)
    return found | {
        "Random": ("RandomStdAgent",),
        "Greedy": ("GreedyStdAgent",),
        "all built-ins": ("GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent"),
    }


def planned(count: int, days: tuple[int, int], seed: int) -> list[tuple[str, WorldSpec]]:
    """(population, world) for each world to be played."""
    draw = random.Random(f"verify {seed}")
    names = populations()
    specs = []
    for i in range(count):
        name = list(names)[i % len(names)]
        processes = shape(draw, (2, 4), (3, 8))
        agents = tuple(draw.choice(names[name]) for _ in processes)
        world_id = f"verify-{seed}-{i:04d}"
        specs.append((name, spec_of(world_id, draw, processes, agents, draw.randint(*days))))
    return specs


def by_level(agents: tuple[str, ...], count: int, days: int, seed: int) -> list[WorldSpec]:
    """Worlds of 3 x 4 factories; the last level is played by the first agent, the others take turns upstream."""
    draw = random.Random(f"{' '.join(agents)} {seed}")
    processes = (0,) * 4 + (1,) * 4 + (2,) * 4
    seated = tuple(agents[(2 - level) % len(agents)] for level in processes)
    return [spec_of(f"{'-'.join(agents)}-{seed}-{i:04d}", draw, processes, seated, days) for i in range(count)]


def shape(draw: random.Random, levels: tuple[int, int], factories: tuple[int, int]) -> tuple[int, ...]:
    """The level of every factory of a world."""
    return tuple(level for level in range(draw.randint(*levels)) for _ in range(draw.randint(*factories)))


def spec_of(
    world_id: str, draw: random.Random, processes: tuple[int, ...], agents: tuple[str, ...], days: int
) -> WorldSpec:
    """A world with seeds of its own."""
    market, play = draw.randrange(2**31), draw.randrange(2**31)
    return WorldSpec(world_id, market, play, days, processes, agents, (True,) * len(agents))
