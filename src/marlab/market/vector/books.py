"""The books: every signed contract by the day of its delivery, in a ring of eleven days.

A contract is one number: price, place in the order of signing, and units. A pair signs at most one contract a day, so
a thread has eleven places for each day of delivery, one per day of signing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from marlab.market.vector.rounds import Threads
from marlab.market.vector.setup import buyer_calls

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
    signed: Tensor  # [2, B, L, A, 2, S]: units and money by factory and side, as agents see them

    @property
    def slot(self) -> int:
        """Where today's deliveries are."""
        return self.clock % SLOTS

    def order(self) -> Tensor:
        """[S]: the slots in the order of days, today first."""
        return (torch.arange(SLOTS, device=self.lots.device) + self.slot) % SLOTS

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
        world, market, caller, responder = fresh
        buying = self._buyer_calls[market]
        seller, buyer = torch.where(buying, responder, caller), torch.where(buying, caller, responder)
        for level, place, side in ((market, seller, 1), (market + 1, buyer, 0)):
            at = (world, level, place, torch.full_like(world, side), slot)
            self.signed[0].index_put_(at, units, accumulate=True)
            self.signed[1].index_put_(at, units * price, accumulate=True)
        threads.fresh = torch.zeros_like(threads.fresh)

    @property
    def _buyer_calls(self) -> Tensor:
        levels = self.signed.shape[2]
        return torch.tensor([buyer_calls(k, levels) for k in range(levels - 1)], device=self.lots.device)

    def next_day(self) -> None:
        """Today's deliveries are done."""
        self.lots[self.slot] = 0
        self.units[self.slot] = 0
        self.money[self.slot] = 0
        self.signed[..., self.slot] = 0
        self.clock += 1

    def clear(self, worlds: Tensor) -> None:
        """Forget everything of some worlds [B], bool."""
        for values in (self.lots, self.units, self.money):
            values[:, worlds] = 0
        self.signed[:, worlds] = 0


def open_books(threads: tuple[int, ...], device: torch.device) -> Books:
    """Empty books for threads of shape [B, P, C, R]."""

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.int32, device=device)

    worlds, markets, wide, _ = threads
    signed = zeros(2, worlds, markets + 1, wide, 2, SLOTS)
    return Books(0, zeros(SLOTS, *threads, SLOTS), zeros(SLOTS, *threads), zeros(SLOTS, *threads), signed)
