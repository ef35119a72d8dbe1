"""Where to go next: what scores tell about the habits that were drawn.

Sellers of one market differ only in their habits, so what differs in their scores is due to them, or to luck. For every
habit a parabola is fitted to the differences within markets, over all batches with the older ones counting less; then
every habit goes part of the way to its top. A slope that could be luck counts little, and a bend that is hardly known
is taken to be a usual one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.rules.habits import ALL

Array = NDArray[np.float64]
SPREAD, LEAST, MOST = (
    np.array([getattr(number, part) for number in ALL.values()]) for part in ("spread", "least", "most")
)
"""[H] how far each habit is drawn, and its bounds."""
USUAL = np.array([number.usual for number in ALL.values()])
SLOPE = 1.0e-3
"""A usual slope: score per spread. Smaller ones than their error are taken for luck."""
BEND, BENDS = -0.4e-3, 0.4e-3
"""A usual bend and how much bends differ: score per squared spread."""
FLATTEST = 2.5e-4
"""A bend that is flatter than this counts as this."""
PART = 0.7
"""How much of the way to the top is gone at once."""
FARTHEST = 6.0
"""Spreads from the rule that no habit exceeds."""


@dataclass(frozen=True)
class Moments:
    """Sums of products of habits, their squares and scores, all less their means in a market."""

    products: Array
    """[2 H + 1, 2 H + 1]."""
    seats: float
    """How many they are of, less one for every market."""

    def plus(self, other: Moments, memory: float = 1.0) -> Moments:
        """With those of another batch; the older ones count less."""
        return Moments(memory * self.products + other.products, memory * self.seats + other.seats)


def nothing() -> Moments:
    """Before the first batch."""
    return Moments(np.zeros((2 * len(ALL) + 1,) * 2), 0.0)


def draw(centre: Array, count: int, spread: float, share: float, rng: np.random.Generator) -> Array:
    """[count, H] habits around a centre [H], each with a `share` of them changed.

    Were all of them changed at once, a seller would play so badly that the best habit is one that makes up for others.
    """
    size = (count, len(ALL))
    strays = spread * SPREAD * rng.standard_normal(size) * (rng.random(size) < share)
    return np.clip(centre + strays, LEAST, MOST)


def moments(habits: Array, scores: Array, market: NDArray[np.int64]) -> Moments:
    """Of sellers with habits [N, H] and scores [N] in some markets [N]."""
    order = np.argsort(market, kind="stable")
    z = (habits[order] - USUAL) / SPREAD
    table = np.concatenate([z, z**2, scores[order][:, None]], 1)
    starts = np.flatnonzero(np.r_[True, np.diff(market[order]) != 0])
    sizes = np.diff(np.r_[starts, len(order)])
    table = table - np.repeat(np.add.reduceat(table, starts, 0) / sizes[:, None], sizes, 0)
    return Moments(table.T @ table, float(len(order) - len(starts)))


class Fitted(NamedTuple):
    """Slopes at the rule and bends, in spreads, with their errors: each [H]."""

    slope: Array
    bend: Array
    slope_error: Array
    bend_error: Array


def fit(known: Moments) -> Fitted:
    """The parabolas."""
    size = len(ALL)
    inner, outer, total = known.products[:-1, :-1], known.products[:-1, -1], known.products[-1, -1]
    inner = inner + np.eye(2 * size) * 1e-6 * np.trace(inner) / (2 * size)
    inverse = np.linalg.inv(inner)
    found = inverse @ outer
    noise = max(1e-12, (total - found @ outer) / max(1.0, known.seats - 2 * size))
    error = np.sqrt(np.maximum(1e-14, np.diag(inverse) * noise))
    return Fitted(found[:size], found[size:], error[:size], error[size:])


def step(centre: Array, fitted: Fitted, reach: float) -> tuple[Array, float]:
    """The next centre [H], and how much it promises to earn more than this one."""
    z = (centre - USUAL) / SPREAD
    trust = 1 / fitted.bend_error**2
    bend = (fitted.bend * trust + BEND / BENDS**2) / (trust + 1 / BENDS**2)
    slope = fitted.slope + 2 * bend * z
    error = np.sqrt(fitted.slope_error**2 + (2 * z * fitted.bend_error) ** 2)
    slope = slope * SLOPE**2 / (SLOPE**2 + error**2) * (np.abs(slope) > error)
    way = PART * np.clip(slope / np.maximum(-2 * bend, FLATTEST), -reach, reach)
    gone = np.clip(z + way, -FARTHEST, FARTHEST)
    moved = np.clip(USUAL + SPREAD * gone, LEAST, MOST)
    way = (moved - centre) / SPREAD
    return moved, float((slope * way + bend * way**2).sum())


def told(fitted: Fitted, count: int = 12) -> list[tuple[str, float, float]]:
    """The clearest slopes: name, slope and how many errors it is away from nothing."""
    clear: Any = fitted.slope / fitted.slope_error
    best = np.argsort(-np.abs(clear))[:count]
    names = list(ALL)
    return [(names[i], float(fitted.slope[i]), float(clear[i])) for i in best]
