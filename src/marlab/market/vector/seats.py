"""The market from the side of its factories: threads by partner, commitments by day, needs.

A factory has two sides, 0 with suppliers and 1 with consumers, and on each side a thread with every factory of the
neighbouring level. Rows are some factories of a batch, N of them, for policies that decide for a factory at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.market.vector.market import Market
from marlab.market.vector.rounds import Moves
from marlab.market.vector.setup import buyer_calls

SUPPLIERS, CONSUMERS = 0, 1


class Rows(NamedTuple):
    """Some factories: where they are, and where their threads are in a flattened [B, P, C, R]."""

    world: Tensor  # [N]
    level: Tensor  # [N], index in the batch
    place: Tensor  # [N]
    threads: Tensor  # [N, 2, A]; nonsense where there is no such side
    sides: Tensor  # [N, 2], bool: the first level has no suppliers to talk to, the last no consumers

    @property
    def seat(self) -> tuple[Tensor, Tensor, Tensor]:
        """An index into seats [B, L, A]."""
        return self.world, self.level, self.place

    def gather(self, threads: Tensor) -> Tensor:
        """Values of threads [B, P, C, R] by side and partner: [N, 2, A]."""
        return threads.reshape(-1)[self.threads]

    def take(self, index: Tensor) -> Rows:
        """Some of them."""
        return Rows(*(values[index] for values in self))

    def __len__(self) -> int:
        return len(self.world)


class Policy(ABC):
    """Answers for some factories. `Seated` tells it about mornings, half-rounds and evenings, whoever moves."""

    def open(self, market: Market) -> None:  # noqa: B027  many policies need nothing here
        """After the market's `open_day`."""

    def hear(self, market: Market) -> None:  # noqa: B027  many policies need nothing here
        """Before anybody answers in a half-round: what was offered in the one before is on the table."""

    def close(self, market: Market) -> None:  # noqa: B027  many policies need nothing here
        """After the last half-round of a day."""

    @abstractmethod
    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        """Moves in threads of these rows, and the flat places of these threads, in equal shapes."""


class Seats:
    """Finds rows in one market; shapes and roles never change, so neither does this."""

    def __init__(self, market: Market) -> None:
        levels, wide = market.levels, market.wide
        self._cells = (levels - 1) * wide * wide
        places = torch.arange(wide)
        index = torch.zeros((levels, wide, 2, wide), dtype=torch.long)
        for k in range(levels - 1):
            calls = k * wide * wide + places[:, None] * wide + places  # [caller, responder]
            seller, buyer = (calls.T, calls) if buyer_calls(k, levels) else (calls, calls.T)
            index[k, :, CONSUMERS] = seller
            index[k + 1, :, SUPPLIERS] = buyer
        self.index = index.to(market.device)  # [L, A, 2, A], cell of a world's threads
        self.sides = torch.ones((levels, 2), dtype=torch.bool, device=market.device)
        self.sides[0, SUPPLIERS] = self.sides[-1, CONSUMERS] = False
        buying = [buyer_calls(k, levels) for k in range(levels - 1)]
        self.buyer_calls = torch.tensor(buying, device=market.device)  # [P]

    def rows(self, chosen: Tensor) -> Rows:
        """Rows of the factories chosen in [B, L, A], bool."""
        world, level, place = chosen.nonzero(as_tuple=True)
        threads = self.index[level, place] + world[:, None, None] * self._cells
        return Rows(world, level, place, threads, self.sides[level])

    def every(self, threads: Tensor) -> Tensor:
        """Threads [B, P, C, R] by factory, side and partner: [B, L, A, 2, A]; 0 where there is no such side."""
        found = threads.flatten(1)[:, self.index]
        return found * self.sides[:, None, :, None].to(found.dtype)

    def threads(self, values: Tensor, half: int) -> Tensor:
        """The inverse for those whose turn it is in this half-round: [B, L, A, 2, A] becomes [B, P, C, R]."""
        worlds, levels, wide = values.shape[:3]
        out = torch.zeros((worlds, self._cells), dtype=values.dtype, device=values.device)
        for level in movers(levels, half):
            for side in (SUPPLIERS, CONSUMERS):
                if self.sides[level, side]:
                    out[:, self.index[level, :, side].flatten()] = values[:, level, :, side].flatten(1)
        return out.reshape(worlds, levels - 1, wide, wide)


def movers(levels: int, half: int) -> list[int]:
    """The levels whose turn it is: callers, from the last level on every second one, or the others."""
    return list(range(levels - 1 - half % 2, -1, -2))


def moving(market: Market) -> Tensor:
    """[B, L, A], bool: factories that move now and still have a running thread."""
    running = market.threads.running
    mine = running.any(3) if market.half % 2 == 0 else running.any(2)  # [B, P, A] by market
    out = torch.zeros_like(market.setup.exists)
    for k in range(market.levels - 1):
        calls = buyer_calls(k, market.levels) == (market.half % 2 == 0)
        level = k + 1 if calls else k
        out[:, level] |= mine[:, k]
    return out


class Commitments(NamedTuple):
    """Signed contracts of rows by days from today, as agents see them: those of bankrupt partners are still listed."""

    supplies: Tensor  # [N, S], units
    sales: Tensor  # [N, S]


def commitments(market: Market, rows: Rows) -> Commitments:
    """Units bought and sold, today's contracts of this moment included."""
    market.books.sign(market.threads)
    units = market.books.signed[0][rows.seat][..., market.books.order()]  # [N, 2, S]
    return Commitments(units[:, SUPPLIERS], units[:, CONSUMERS])


class Needs(NamedTuple):
    """What rows still want for today, as the simulator states it: may be negative, [N] each."""

    supplies: Tensor
    sales: Tensor


def needs_of(market: Market, rows: Rows, signed: Commitments) -> Needs:
    """Units to buy and to sell for today's books to balance; 0 on the side where nobody negotiates."""
    outside = market.outside
    missing = (
        outside.out_units[rows.seat]
        + signed.sales[:, 0]
        - signed.supplies[:, 0]
        - outside.in_units[rows.seat]
        - market.stock[rows.seat]
    )
    first = market.setup.first[rows.world, rows.level]
    last = rows.level == market.levels - 1
    return Needs(torch.where(first, 0, missing), torch.where(last, 0, -missing))
