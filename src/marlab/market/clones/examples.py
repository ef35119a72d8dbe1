"""What experts did, as a clone would have seen it: recorded moves are played again, and every decision is noted.

A decision is one answer of an expert in one thread and half-round. Its inputs are computed in the replaying market by
the code that play uses, so that a clone sees in play what it was fitted on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marlab.market.vector.clones.inputs import Inputs, Watch, added
from marlab.market.vector.clones.network import LOTS, position_of
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded, seats_of, watch_moves
from marlab.market.vector.rounds import ACCEPT, OFFER, Moves
from marlab.market.vector.seats import CONSUMERS, Seats, moving

BATCH = 96
"""Worlds that are replayed together."""
LEAVE, TAKE, ASK = range(3)
"""What was done: left, accepted, or offered."""
FACTS = (
    "op", "day", "lot", "price", "round", "on_table", "lots", "days", "selling", "level", "last_level", "world",
)  # fmt: skip
"""Columns of `facts`. day, lot and price are those of the offer (lot 0 is one unit, price a position), 0 without one;
lots and days say how many there are to choose from; level counts from the first."""


@dataclass(frozen=True)
class Examples:
    """n decisions of one expert."""

    inputs: NDArray[np.float16]  # [n, ALL]
    facts: NDArray[np.int16]  # [n, FACTS]

    def __len__(self) -> int:
        return len(self.facts)

    def column(self, name: str) -> NDArray[np.int16]:
        """One fact of every decision."""
        found: NDArray[np.int16] = self.facts[:, FACTS.index(name)]
        return found

    def take(self, rows: NDArray[Any]) -> Examples:
        """Some of them."""
        return Examples(self.inputs[rows], self.facts[rows])


def examples(worlds: Sequence[Recorded], experts: Sequence[str]) -> dict[str, Examples]:
    """The decisions of every expert in recorded worlds; the fact `world` is the place in `worlds`."""
    found: dict[str, list[Examples]] = {name: [] for name in experts}
    for start in range(0, len(worlds), BATCH):
        some = list(worlds[start : start + BATCH])
        notes: list[Notes] = []

        def look(market: Market, some: list[Recorded] = some, start: int = start, notes: list[Notes] = notes) -> Notes:
            notes.append(Notes(market, some, experts, start))
            return notes[-1]

        watch_moves(some, look)
        for name, more in zip(experts, notes[0].examples()):
            found[name].append(more)
    return {
        name: Examples(np.concatenate([e.inputs for e in parts]), np.concatenate([e.facts for e in parts]))
        for name, parts in found.items()
    }


class Notes:
    """Looks at a replay and notes the decisions of experts."""

    def __init__(self, market: Market, worlds: Sequence[Recorded], experts: Sequence[str], first: int) -> None:
        self.watch, self.seats, self.first = Watch(market), Seats(market), first
        self.expert = torch.full(market.setup.lines.shape, -1, dtype=torch.long)
        for w, world in enumerate(worlds):
            level, place = seats_of(world, market.levels)
            numbers = [experts.index(name) if name in experts else -1 for name in world.agents]
            self.expert[w, level, place] = torch.as_tensor(numbers)
        self._parts: list[tuple[Tensor, Tensor, Tensor]] = []  # expert, inputs, facts
        self._experts = len(experts)

    def open(self, market: Market) -> None:
        """A morning."""
        self.watch.open(market)

    def close(self, market: Market) -> None:
        """An evening."""
        self.watch.close(market)

    def before(self, market: Market, moves: Moves, silent: Tensor) -> None:
        """A half-round."""
        self.watch.hear(market)
        rows = self.seats.rows(moving(market) & (self.expert >= 0))
        if not len(rows):
            return
        seen = self.watch.at(market, rows)
        op, units, price, ahead = (rows.gather(values) for values in moves)
        accepts, offers = answered(seen, op, units, price, ahead)
        so_far = before_each(seen, accepts, offers, units, ahead)
        there = seen.running & ~rows.gather(silent)
        wide = there.shape[2]
        inputs = torch.cat([
            seen.row[:, None, None].expand(-1, 2, wide, -1), seen.side[:, :, None].expand(-1, -1, wide, -1),
            seen.thread, so_far,
        ], -1)  # fmt: skip
        number = torch.where(accepts, TAKE, torch.where(offers, ASK, LEAVE))
        natural = rows.level - (market.levels - market.setup.n_levels[rows.world])
        columns = {
            "op": number, "day": ahead * offers, "lot": (units - 1).clamp(0, LOTS - 1) * offers,
            "price": position_of(price, seen.price_low, seen.price_high) * offers,
            "round": torch.full_like(number, seen.round), "on_table": seen.on_table, "lots": seen.units_max,
            "days": seen.ahead_max + 1, "selling": (torch.arange(2) == CONSUMERS)[None, :, None],
            "level": natural[:, None, None], "last_level": (market.setup.n_levels[rows.world] - 1)[:, None, None],
            "world": (rows.world + self.first)[:, None, None],
        }  # fmt: skip
        facts = torch.stack([columns[name].expand(there.shape).to(torch.int16) for name in FACTS], -1)
        whose = self.expert[rows.seat][:, None, None].expand(there.shape)
        self._parts.append((whose[there], inputs[there].to(torch.float16), facts[there]))

    def examples(self) -> list[Examples]:
        """What was noted, expert by expert."""
        expert, inputs, facts = (torch.cat(column).numpy() for column in zip(*self._parts))
        return [Examples(inputs[expert == e], facts[expert == e]) for e in range(self._experts)]


def answered(seen: Inputs, op: Tensor, units: Tensor, price: Tensor, ahead: Tensor) -> tuple[Tensor, Tensor]:
    """Where an answer is an acceptance and where an offer, as the market takes it; everything else leaves."""
    accepts = seen.running & (op == ACCEPT) & seen.on_table
    fits = (units >= 1) & (units <= seen.units_max) & (ahead >= 0) & (ahead <= seen.ahead_max)
    fits &= (price >= seen.price_low) & (price <= seen.price_high)
    return accepts, seen.running & (op == OFFER) & fits


def before_each(seen: Inputs, accepts: Tensor, offers: Tensor, units: Tensor, ahead: Tensor) -> Tensor:
    """What was answered before on either side, [N, 2, A, SO_FAR]: both sides go in step, one running thread each."""
    taken = torch.where(accepts, seen.table_units, units.float())
    when = torch.where(accepts, seen.table_ahead, ahead.float())
    each = added(accepts, offers, taken, when)  # [N, 2, A, 5]
    place = torch.where(seen.running, seen.running.cumsum(2) - 1, seen.running.shape[2])
    earlier = (place[:, :, :, None] > place[:, :, None]).float()  # [N, 2, A, A]
    others = (place[:, :, :, None] > place.flip(1)[:, :, None]).float()
    return torch.cat([earlier @ each, others @ each.flip(1)], -1)
