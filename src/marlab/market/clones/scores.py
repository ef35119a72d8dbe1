"""What experts earn in worlds of clones, beside what they earned in the real worlds of the same configs and seats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.lab.stats import Measured, mean_interval
from marlab.market.simulator.seating import POSITIONS
from marlab.market.vector.builtin import play
from marlab.market.vector.clones import ClonePack
from marlab.market.vector.configs import join
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded, seats_of
from marlab.market.vector.setup import make_setup

MOST = 256
"""Worlds that are played together."""


@dataclass(frozen=True)
class Played:
    """One real world, and its config played by clones."""

    agents: tuple[str, ...]
    level: NDArray[np.int64]  # [F], from the first
    real: NDArray[np.float64]  # [F], scores
    clones: NDArray[np.float64]  # [R, F]

    def position(self, factory: int) -> str:
        """Where a factory stands in the chain."""
        return "first" if self.level[factory] == 0 else "last" if self.level[factory] == self.level.max() else "middle"


def play_again(
    pack: ClonePack, worlds: Sequence[Recorded], repeats: int, device: torch.device, seed: int
) -> list[Played]:
    """Every world's config and seats, played `repeats` times by clones, built-in agents and our rule."""
    generator = torch.Generator(device).manual_seed(seed)
    found = []
    for start in range(0, len(worlds), max(1, MOST // repeats)):
        some = worlds[start : start + max(1, MOST // repeats)]
        market = Market(make_setup(join([world.config for world in some for _ in range(repeats)]), device=device))
        names = sorted({name for world in some for name in world.agents})
        who = torch.zeros(market.setup.lines.shape, dtype=torch.long)
        places = [seats_of(world, market.levels) for world in some]
        for w, (world, (level, place)) in enumerate(zip(some, places)):
            who[w * repeats : (w + 1) * repeats, level, place] = torch.tensor([names.index(a) for a in world.agents])
        play(market, pack.seated(market, names, who.to(device), generator))
        scores = market.scores().double().cpu().numpy()
        for w, (world, (level, place)) in enumerate(zip(some, places)):
            mine = scores[w * repeats : (w + 1) * repeats][:, level, place]
            found.append(Played(world.agents, world.level, world.scores, mine))
    return found


def by_position(played: Sequence[Played], name: str) -> dict[str, dict[str, Any]]:
    """Real and clone scores of one agent by its place in the chain, and their difference seat by seat."""
    table = {}
    for place in (*POSITIONS, "all"):
        seats = [
            (world.real[f], world.clones[:, f].mean())
            for world in played
            for f in range(len(world.agents))
            if world.agents[f] == name and place in (world.position(f), "all")
        ]
        if seats:
            real, clone = np.array(seats).T
            table[place] = {
                "seats": len(seats),
                "real": _mean(real),
                "clone": _mean(clone),
                "difference": _mean(clone - real),
            }
    return table


def _mean(values: NDArray[np.float64]) -> Measured:
    mean, low, high = (float(v) for v in mean_interval(values))
    return Measured(mean) if len(values) < 2 else Measured(mean, low, high)
