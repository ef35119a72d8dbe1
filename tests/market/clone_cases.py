"""Recorded worlds and small packs for the tests of clones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import torch

from marlab.market.vector.clones import ClonePack, network
from marlab.market.vector.generate import generate
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded
from marlab.market.vector.setup import make_setup
from tests.market.vector_worlds import recorded_worlds

RULE = "LitaAgentHRL"


@cache
def named_worlds() -> tuple[Recorded, ...]:
    """The shared recorded worlds; the kinds of their agents are known by their populations, so names take turns."""
    names = ("AS0", "PenguinAgent", "SyncRandomStdAgent")
    return tuple(
        replace(world, agents=tuple(names[(w + f) % 3] for f in range(len(world.scores))))
        for w, world in enumerate(recorded_worlds())
    )


def small_worlds() -> list[Recorded]:
    """The three of them that are replayed most quickly, in the order of their names."""
    size = {world.world_id: len(world.tables["decisions"]["op"]) for world in named_worlds()}
    few = sorted(size, key=lambda name: size[name])[:3]
    return [world for world in named_worlds() if world.world_id in few]


def small_pack(experts: int = 2, hidden: int = 8, seed: int = 0) -> ClonePack:
    """Random weights of patient experts."""
    weights = network.new_weights(experts, hidden, torch.Generator().manual_seed(seed))
    weights["leave_round"] -= 3
    return ClonePack(tuple(f"Expert{e}" for e in range(experts)), weights, {"worlds": 3})


def fresh_market(worlds: int = 3, days: int = 5, levels: tuple[int, int] = (2, 3)) -> Market:
    """Markets of several shapes."""
    return Market(
        make_setup(generate(worlds, np.random.default_rng(0), levels=levels, factories=(2, 3), days=(days, days)))
    )
