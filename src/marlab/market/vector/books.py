"""The books: every signed contract by the day of its delivery, in a ring of eleven days.

A contract is one number: price, place in the order of signing, and units. A pair signs at most one contract a day, so
a thread has eleven places for each day of delivery, one per day of signing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from marlab.market.vector.rounds import Threads

HORIZON = 10
SLOTS = HORIZON + 1
RANK_SHIFT, RANK_BITS = 6, 9
PRICE_SHIFT = RANK_SHIFT + RANK_BITS
UNITS_MASK = (1 << RANK_SHIFT) - 1
MOST_PRICE = (1 << (31 - PRICE_SHIFT)) - 1
"""Units up to 63, prices up to 65,535."""


@dataclass
class Books:
    """Slot `clock % 11` is today's."""

    clock: int
    lots: Tensor  # [S delivery, B, P, C, R, S signing]
    units: Tensor  # [S, B, P, C, R], sums over signing days
    money: Tensor  # [S, B, P, C, R]

    @property
    def slot(self) -> int:
        """Where today's deliveries are."""
        return self.clock % SLOTS

    def days_ahead(self, values: Tensor) -> Tensor:
        """`units` or `money` with today first."""
        return torch.roll(values, -self.slot, 0)

    def ages(self) -> Tensor:
        """[S]: 0 for the place of the oldest signing day, 10 for today's."""
        return (torch.arange(SLOTS, device=self.lots.device) - self.clock - 1) % SLOTS

    def sign(self, threads: Threads, rank: Tensor | None = None) -> None:
        """Enter the contracts that were agreed since the last call. `rank`: their order of signing within the day."""
        fresh = threads.fresh.nonzero(as_tuple=True)
        if not len(fresh[0]):
            return
        units, price = threads.agreed_units[fresh], threads.agreed_price[fresh]
        if rank is None:  # by half-round; among those of one half-round by the caller's, then the responder's place
            order = threads.agreed_half[fresh] * 12 + (fresh[2] + fresh[3]).clamp(max=11)
        else:
            order = rank[fresh]
        slot = (self.clock + threads.agreed_ahead[fresh].long()) % SLOTS
        self.lots[(slot, *fresh, torch.full_like(slot, self.slot))] = (
            (price << PRICE_SHIFT) | (order.to(price.dtype) << RANK_SHIFT) | units
        )
        self.units[(slot, *fresh)] += units
        self.money[(slot, *fresh)] += units * price
        threads.fresh = torch.zeros_like(threads.fresh)

    def next_day(self) -> None:
        """Today's deliveries are done."""
        self.lots[self.slot] = 0
        self.units[self.slot] = 0
        self.money[self.slot] = 0
        self.clock += 1

    def clear(self, worlds: Tensor) -> None:
        """Forget everything of some worlds [B], bool."""
        for values in (self.lots, self.units, self.money):
            values[:, worlds] = 0


def open_books(threads: tuple[int, ...], device: torch.device) -> Books:
    """Empty books for threads of shape [B, P, C, R]."""

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.int32, device=device)

    return Books(0, zeros(SLOTS, *threads, SLOTS), zeros(SLOTS, *threads), zeros(SLOTS, *threads))
