"""Worlds of the vector market in which some sellers have habits of their own.

A batch has several worlds of every market: the same factories and the same others around. Two selling seats are ours,
one at the first level and one at a middle one where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.market.fidelity.sellers import VARIANTS, population
from marlab.market.rules.habits import DIRECT, FIRST, MIDDLE, POSITIONS
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.clones import ClonePack
from marlab.market.vector.generate import generate_like
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.setup import make_setup

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
THE_RULE, CENTRE, DRAWN = range(3)
"""What a seat plays."""
Drawing = Callable[[int, int, np.random.Generator], Array]
"""Position and number of seats; returns habits [count, H] of seats of every market in turn."""


class Sold(NamedTuple):
    """Our seats of a batch: each [N]."""

    score: Array
    habits: Array  # [N, H]
    plays: Ints  # THE_RULE, CENTRE or DRAWN
    position: Ints  # place in `habits.POSITIONS`
    market: Ints  # the same seat of one market has the same number in all its worlds


class Batch(NamedTuple):
    """What is played."""

    sizes: tuple[int, ...]  # factories by level
    markets: int
    draws: int
    days: int
    seed: int


def plays_of(count: int, draws: int) -> Ints:
    """What the seats of worlds [count] play: of every market's worlds the first the rule, the second the centre."""
    plays = np.full(count, DRAWN)
    plays[0::draws], plays[1::draws] = THE_RULE, CENTRE
    return plays


def sell(batch: Batch, pack: ClonePack, opponents: Sequence[str], drawing: Drawing, device: torch.device) -> Sold:
    """Play a batch to the end."""
    rng = np.random.default_rng(batch.seed)
    sizes, count = batch.sizes, batch.markets * batch.draws
    levels, wide = len(sizes), max(sizes)
    shapes = np.tile(np.array(sizes), (batch.markets, 1))
    configs = generate_like(np.full(batch.markets, levels), shapes, np.full(batch.markets, batch.days), rng)
    market = Market(make_setup(configs.take(np.repeat(np.arange(batch.markets), batch.draws)), torch.float32, device))
    others = np.stack([_around(len(opponents), levels * wide, rng) for _ in range(batch.markets)])
    who = np.repeat(others, batch.draws, 0).reshape(count, levels, wide)
    number, world = np.full(who.shape, -1), np.arange(count)
    rows: list[Array] = []
    seats: list[tuple[Ints, Ints, Ints]] = []
    for level, place in _places(sizes, batch.markets, rng):
        level, place = np.repeat(level, batch.draws), np.repeat(place, batch.draws)
        position = np.where(level > 0, POSITIONS.index(MIDDLE), POSITIONS.index(DIRECT if levels == 2 else FIRST))
        habits = drawing(int(position[0]), count, rng)  # a seat is at the same position in all worlds
        number[world, level, place] = len(rows) * count + world
        rows.append(habits)
        seats.append((level, place, position))
    who[number >= 0] = -1
    generator = torch.Generator(device=device).manual_seed(batch.seed)
    seated = population(pack, market, opponents, torch.as_tensor(who, device=device), generator)
    mine: Any = torch.as_tensor(number, device=device)
    kind = torch.where(mine >= 0, VARIANTS, seated.kind)
    rule = RuleW(market, chosen=mine >= 0, quick=True)
    rule.follow(torch.as_tensor(np.concatenate(rows)), mine.clamp(min=0))
    play(market, Seated(market, kind, {**seated.policies, VARIANTS: rule}, generator))
    scores = market.scores().cpu().double().numpy()
    plays, numbers = plays_of(count, batch.draws), np.repeat(np.arange(batch.markets), batch.draws)
    parts = [
        Sold(scores[world, level, place], habits, plays, position, numbers * len(seats) + seat)
        for seat, (habits, (level, place, position)) in enumerate(zip(rows, seats))
    ]
    return Sold(*(np.concatenate(part) for part in zip(*parts)))


def _around(kinds: int, seats: int, rng: np.random.Generator) -> Ints:
    """[seats] who sits where: everybody equally often, as far as it goes."""
    return np.concatenate([rng.permutation(kinds) for _ in range(-(-seats // kinds))])[:seats]


def _places(sizes: tuple[int, ...], markets: int, rng: np.random.Generator) -> list[tuple[Ints, Ints]]:
    """Level and place of our two seats in every market."""
    first, selling = rng.integers(sizes[0], size=markets), len(sizes) - 1
    at_first = np.zeros(markets, np.int64)
    if selling == 1:
        return [(at_first, first), (at_first, (first + rng.integers(1, sizes[0], size=markets)) % sizes[0])]
    return [(at_first, first), (rng.integers(1, selling, size=markets), rng.integers(sizes[1], size=markets))]
