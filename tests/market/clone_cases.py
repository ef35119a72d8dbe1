"""Recorded worlds and small packs for the tests of clones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from marlab.market.logs.worldfile import read_world, write_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.vector.clones import ClonePack, network
from marlab.market.vector.generate import generate
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded
from marlab.market.vector.setup import make_setup
from tests.market.vector_worlds import GOLDEN

RULE = "LitaAgentHRL"


@cache
def named_logs() -> tuple[WorldLog, ...]:
    """The shared recorded worlds; the kinds of their agents are known by their populations, so names take turns."""
    names = ("AS0", "PenguinAgent", "SyncRandomStdAgent")
    logs = []
    for w, path in enumerate(sorted(GOLDEN.glob("*.parquet"))):
        log = read_world(path)
        agents = [agent | {"type": names[(w + f) % 3]} for f, agent in enumerate(log.agents)]
        logs.append(replace(log, meta=log.meta | {"agents": agents}))
    return tuple(logs)


@cache
def named_worlds() -> tuple[Recorded, ...]:
    """The same as the vector market replays them."""
    return tuple(Recorded.of(log) for log in named_logs())


def small_worlds() -> list[Recorded]:
    """The three of them that are replayed most quickly, in the order of their names."""
    return [Recorded.of(log) for log in _small_logs()]


def write_small_worlds(folder: Path) -> None:
    """Their files."""
    folder.mkdir(parents=True, exist_ok=True)
    for log in _small_logs():
        write_world(folder / f"{log.meta['world_id']}.parquet", log)


def _small_logs() -> list[WorldLog]:
    size = {log.meta["world_id"]: len(log.tables["decisions"]["op"]) for log in named_logs()}
    few = sorted(size, key=lambda name: size[name])[:3]
    return [log for log in named_logs() if log.meta["world_id"] in few]


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
