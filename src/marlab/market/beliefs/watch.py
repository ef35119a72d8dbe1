"""Recorded worlds as an observer sees them: every answer with its public context and the type that gave it.

Recorded worlds are played again in the vector market and watched with the eyes of every factory, the same eyes that
watch when an agent plays (`vector.beliefs.Watch`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marlab.market.logs.worldlog import REJECT
from marlab.market.rules import beliefs
from marlab.market.vector.beliefs import Seen, Watch
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded, Witness, seats_of, watch_moves
from marlab.market.vector.rounds import Moves
from marlab.market.vector.setup import pairs_of

NOBODY, UNKNOWN = -2, -1
"""Instead of a type: no factory, and an agent that is none of the types."""
TOGETHER = 48
"""Worlds that are replayed at once."""


@dataclass(frozen=True)
class Samples:
    """Answers, M of them."""

    context: Tensor  # [M, D], half precision
    chosen: Tensor  # [M, 4] classes of operator, lot, price and day
    offers: Tensor  # [M], bool: the answer is an offer, so lot, price and day count
    type: Tensor  # [M]

    def __len__(self) -> int:
        return len(self.type)

    def take(self, rows: Tensor) -> Samples:
        """Some of them."""
        return Samples(*(getattr(self, f.name)[rows] for f in fields(self)))

    def to(self, device: torch.device) -> Samples:
        """The same elsewhere."""
        return Samples(*(getattr(self, f.name).to(device) for f in fields(self)))

    def split(self, size: int) -> list[Samples]:
        """All of them in parts."""
        return [Samples(*parts) for parts in zip(*(getattr(self, f.name).split(size) for f in fields(self)))]


def numbers(world: Recorded, types: Sequence[str]) -> NDArray[np.int64]:
    """[F] the types of a world's factories, UNKNOWN for others."""
    known = {name: number for number, name in enumerate(types)}
    return np.array([known.get(agent, UNKNOWN) for agent in world.agents])


def kinds(worlds: Sequence[Recorded], types: Sequence[str]) -> Tensor:
    """[B, L, A] the types in the seats of the market in which these worlds are played again."""
    configs = [world.config for world in worlds]
    levels, wide = max(int(c.n_levels.max()) for c in configs), max(int(c.sizes.max()) for c in configs)
    seats = torch.full((len(worlds), levels, wide), NOBODY)
    for w, world in enumerate(worlds):
        seats[w][seats_of(world, levels)] = torch.as_tensor(numbers(world, types))
    return seats


W = TypeVar("W", bound=Witness)


def watched(worlds: Sequence[Recorded], witness: Callable[[Market], W]) -> W:
    """A witness who has seen these worlds played again."""
    seen: list[W] = []

    def came(market: Market) -> W:
        seen.append(witness(market))
        return seen[0]

    watch_moves(list(worlds), came, torch.float32)
    return seen[0]


def partner_types(kind: Tensor) -> Tensor:
    """[2, B, P, C, R] the type that each watcher (caller 0, responder 1) looks at."""
    calling, answering = pairs_of(kind)
    shape = torch.broadcast_shapes(calling.shape, answering.shape)
    there = (calling != NOBODY) & (answering != NOBODY)
    pair = torch.stack([answering.expand(shape), calling.expand(shape)])
    return torch.where(there, pair, NOBODY)


class _Collector:
    """A witness that keeps a share of what it sees."""

    def __init__(self, market: Market, partner: Tensor, share: float, generator: torch.Generator) -> None:
        self._watch, self._partner = Watch(market), partner.flatten(1)
        self._share, self._generator = share, generator
        self.parts: list[Samples] = []

    def open(self, market: Market) -> None:
        self._watch.open(market)

    def before(self, market: Market, moves: Moves, silent: Tensor) -> None:
        self.close(market)

    def close(self, market: Market) -> None:
        seen = self._watch.heard(market)
        if seen is not None:
            self._keep(seen)

    def _keep(self, seen: Seen) -> None:
        partner = self._partner[seen.watcher, seen.places]
        kept = (partner >= 0) & (torch.rand(len(partner), generator=self._generator) < self._share)
        answers: Any = seen.answers
        chosen = torch.stack([torch.as_tensor(part) for part in beliefs.classes(answers)], 1)
        self.parts.append(Samples(
            torch.as_tensor(beliefs.contexts(answers))[kept].half(), chosen[kept].to(torch.uint8),
            (answers.op == REJECT)[kept], partner[kept].to(torch.uint8),
        ))  # fmt: skip


def gather(
    worlds: Sequence[Recorded],
    types: Sequence[str],
    share: float,
    seed: int,
    tick: Callable[[int], None] = lambda n: None,
) -> Samples:
    """A share of all answers that agents of these types gave; `tick` is told how many worlds were played again."""
    generator = torch.Generator().manual_seed(seed)
    parts: list[Samples] = []
    for begin in range(0, len(worlds), TOGETHER):
        some = worlds[begin : begin + TOGETHER]
        partner = partner_types(kinds(some, types))
        parts += watched(some, lambda market: _Collector(market, partner, share, generator)).parts  # noqa: B023
        tick(len(some))
    return Samples(*(torch.cat([getattr(part, f.name) for part in parts]) for f in fields(Samples)))
