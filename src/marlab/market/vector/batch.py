"""A batch of worlds for trainers: reset, observe, step by half-rounds, rewards in the evening.

    batch = Batch(make_setup(configs))
    seen = batch.reset()
    while not batch.done.all():
        seen, reward, done = batch.step(moves)      # Moves, each [B, F, K]; only those who act are heard

F = L * A factories (level by level), K = 2 A partners (suppliers first). Callers act in even half-rounds, responders in
odd ones; `seen.acting` says who does. The last half-round of a day settles it, pays the rewards and opens the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.market.vector.builtin import Seated
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES, Moves
from marlab.market.vector.seats import CONSUMERS, SUPPLIERS, Seats, commitments, moving, needs_of
from marlab.market.vector.setup import Setup

UNITS, PRICE = 10.0, 100.0
"""Scales of units and prices in observations."""
OWN = 41
"""Values about the factory itself."""
THREAD = 5
"""Values about each thread: whether it runs, the offer on the table (units, place of its price, days), units signed."""


class Observation(NamedTuple):
    """What all factories see; rows of places without a factory are 0."""

    acting: Tensor  # [B, F], bool: it moves now and has a running thread
    own: Tensor  # [B, F, OWN]
    threads: Tensor  # [B, F, K, THREAD]


class Batch:
    """Worlds in lockstep. `others` plays the seats of `theirs` [B, F], bool; by default all seats are the trainer's."""

    def __init__(
        self, setup: Setup, others: Callable[[Market], Seated] | None = None, theirs: Tensor | None = None
    ) -> None:
        self.setup, self._others, self._theirs = setup, others, theirs
        self.market = Market(setup)
        self.factories, self.partners = self.market.levels * self.market.wide, 2 * self.market.wide
        self._seats = Seats(self.market)
        self._policy: Seated | None = None

    @property
    def done(self) -> Tensor:
        """[B]: worlds that are over."""
        return ~self.market.playing

    def reset(self) -> Observation:
        """Begin all worlds."""
        self.market = Market(self.setup)
        self._policy = None if self._others is None else self._others(self.market)
        self._open()
        return self.observe()

    def step(self, moves: Moves) -> tuple[Observation, Tensor, Tensor]:
        """One half-round. Returns what is seen then, rewards [B, F] (profit by opening balance, 0 but in the evening),
        and which worlds are over [B]."""
        reward = self.advance(moves)
        return self.observe(), reward, self.done

    def advance(self, moves: Moves) -> Tensor:
        """The same without a look at it: rewards [B, F]."""
        market = self.market
        shape = (market.worlds, market.levels, market.wide, 2, market.wide)
        mine = Moves(*(self._seats.threads(part.view(shape), market.half) for part in moves))
        if self._policy is not None and self._theirs is not None:
            theirs = self._policy(market)
            taken = self._theirs.view(shape[:3])[..., None, None].expand(shape)
            given = self._seats.threads(taken, market.half)
            mine = Moves(*(torch.where(given, b, a.to(b.dtype)) for a, b in zip(mine, theirs)))
        market.move(mine)
        reward = torch.zeros_like(market.balance)
        if market.half == HALVES:
            before = market.balance
            if self._policy is not None:
                self._policy.close(market)
            market.close_day()
            reward = (market.balance - before) / self.setup.balance.clamp(min=1)
            self._open()
        return reward.flatten(1)

    def observe(self) -> Observation:
        """What everybody sees now."""
        market = self.market
        exists = market.setup.exists
        rows = self._seats.rows(exists)
        signed = commitments(market, rows)
        needs = needs_of(market, rows, signed)
        outside = [part[rows.seat].float() for part in market.outside]
        low, high = (self.side_prices(part) for part in (market.ranges.price_low, market.ranges.price_high))
        first = market.setup.first[rows.world, rows.level]
        columns = [
            market.day[rows.world] / market.setup.n_steps[rows.world],
            torch.full_like(outside[0], market.half / HALVES),
            (market.balance / market.setup.balance.clamp(min=1))[rows.seat], market.stock[rows.seat] / UNITS,
            market.setup.cost[rows.seat] / UNITS, market.setup.storage[rows.seat],
            market.today(market.setup.shortfall)[rows.seat], first, rows.level == market.levels - 1,
            outside[0] / UNITS, outside[1] / PRICE, outside[2] / UNITS, outside[3] / PRICE,
            needs.supplies / UNITS, needs.sales / UNITS,
            *(part[rows.seat][:, side] / PRICE for part in (low, high) for side in (SUPPLIERS, CONSUMERS)),
        ]  # fmt: skip
        table = [*(column.float()[:, None] for column in columns), signed.supplies / UNITS, signed.sales / UNITS]
        own = torch.zeros((*exists.shape, OWN), device=market.device)
        own[rows.seat] = torch.cat([part.float() for part in table], 1)
        return Observation(moving(market).flatten(1), own.flatten(1, 2), self._see_threads(low, high))

    def waiting(self) -> Tensor:
        """[B, F, K], bool: threads that the factory has to answer in this half-round."""
        running: Tensor = self._seats.every(self.market.threads.running).flatten(3, 4).flatten(1, 2)
        return running & moving(self.market).flatten(1)[..., None]

    def side_prices(self, values: Tensor) -> Tensor:
        """Bounds of prices [B, P, 1, 1] by factory and side: [B, L, A, 2]."""
        market = self.market
        every = values.expand(market.threads.units.shape)
        return self._seats.every(every)[..., 0]

    def _see_threads(self, low: Tensor, high: Tensor) -> Tensor:
        threads = self.market.threads
        units, price, ahead = (
            self._seats.every(part).float() for part in (threads.units, threads.price, threads.ahead)
        )
        place = (price - low[..., None]) / (high - low).clamp(min=1)[..., None] * (units > 0)
        running, agreed = self._seats.every(threads.running), self._seats.every(threads.agreed_units)
        columns = (running.float(), units / UNITS, place, ahead / UNITS, agreed.float() / UNITS)
        return torch.stack(columns, -1).flatten(3, 4).flatten(1, 2)  # [B, L, A, 2, A, .] to [B, F, K, .]

    def _open(self) -> None:
        self.market.open_day()
        if self._policy is not None:
            self._policy.open(self.market)
