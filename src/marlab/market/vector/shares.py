"""Random shares: how built-in agents split a quantity over their partners, for many rows at once.

A unit falls on any partner with equal chance, so the units of each partner in turn are a binomial number of what is
left. Such numbers are looked up: all cumulative chances stand in one sorted list, shifted by the number of their row.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

MOST = 240
"""Largest quantity that can be split: eight partners, thirty units each."""
MOST_PARTNERS = 8


@functools.cache
def _chances(device: torch.device) -> tuple[Tensor, Tensor]:
    """Cumulative chances of Binomial(q, 1 / m) + row, one row after the other, and where each row begins: [Q, M]."""
    values: list[float] = []
    starts = torch.zeros((MOST + 1, MOST_PARTNERS), dtype=torch.long)
    row = 0
    for q in range(MOST + 1):
        for m in range(1, MOST_PARTNERS + 1):
            starts[q, m - 1] = len(values)
            chance, total = (1 - 1 / m) ** q, 0.0
            for k in range(q + 1):
                if m == 1:
                    chance = float(k == q)
                total = min(1.0, total + chance)
                values.append(row + (1.0 if k == q else total))
                chance *= (q - k) / (k + 1) / (m - 1) if m > 1 else 1.0
            row += 1
    return torch.tensor(values, dtype=torch.float64, device=device), starts.to(device)


def binomial(units: Tensor, partners: Tensor, generator: torch.Generator | None) -> Tensor:
    """Of `units`, how many fall on one of `partners` equal partners; [N] each."""
    chances, starts = _chances(units.device)
    row = units.long() * MOST_PARTNERS + partners.long() - 1
    drawn = torch.rand(row.shape, dtype=torch.float64, device=row.device, generator=generator)
    found = torch.searchsorted(chances, row + drawn, right=True)
    return (found - starts.view(-1)[row]).to(units.dtype)


def scattered(units: Tensor, to: Tensor, generator: torch.Generator | None) -> Tensor:
    """Units [N] that fall one by one on the partners in `to` [N, A], bool: a share for each."""
    left, partners = units, to.sum(1)
    shares = []
    for j in range(to.shape[1]):
        here = to[:, j]
        drawn = left if j == to.shape[1] - 1 else binomial(left, partners.clamp(min=1), generator)
        shares.append(drawn * here)
        left, partners = left - shares[-1], partners - here.to(partners.dtype)
    return torch.stack(shares, 1)


def order_of(to: Tensor, generator: torch.Generator | None) -> Tensor:
    """A random place 0, 1, ... for every partner in `to` [N, A]; the others come after them."""
    drawn = torch.rand(to.shape, device=to.device, generator=generator) + (~to).to(torch.float32)
    if to.shape[1] <= MOST_PARTNERS:  # counting is quicker than sorting
        return (drawn[:, :, None] > drawn[:, None, :]).sum(2)
    return drawn.argsort(1).argsort(1)


def heaped(units: Tensor, place: Tensor, partners: Tensor, most: int, floor: bool) -> Tensor:
    """Units [N] on as few partners as possible, in the order `place` [N, A]; with `floor` everybody gets one first."""
    inside = place < partners[:, None]
    if not floor:
        return torch.where(inside, (units[:, None] - place * most).clamp(0, most), 0).to(units.dtype)
    ones = (place < units[:, None]) & inside
    spare = (units - partners).clamp(min=0)[:, None]  # beyond one each, up to most - 1 more per partner
    return ones.to(units.dtype) + torch.where(inside, (spare - place * (most - 1)).clamp(0, most - 1), 0).to(
        units.dtype
    )


def split(
    units: Tensor, to: Tensor, *, most: int, heap: Tensor, equal: Tensor | None, generator: torch.Generator | None
) -> Tensor:
    """The simulator's way to distribute units [N] over partners `to` [N, A].

    `heap` [N], bool: on as few partners as possible. `equal`: None lets partners go empty; otherwise everybody gets one
    unit, or an equal share where `equal` [N] is True, before the rest is scattered.
    """
    partners = to.sum(1).to(units.dtype)
    units = torch.minimum(units, partners * most).clamp(max=MOST)
    place = order_of(to, generator)
    few = (place < units[:, None]) & to  # fewer units than partners: one each for some of them
    base = torch.zeros_like(units)
    if equal is not None:
        shared = torch.div(units, partners.clamp(min=1), rounding_mode="floor")
        base = torch.where(equal, shared, 1)
    spread = few.to(units.dtype)  # as many units as partners, or fewer
    some = ((units > partners) & ~heap).nonzero()[:, 0]
    if len(some):
        rest = (units - base * partners)[some]
        spread[some] = scattered(rest, to[some], generator) + base[some][:, None] * to[some]
    heaps = heap.nonzero()[:, 0]
    if len(heaps):
        spread[heaps] = heaped(units[heaps], place[heaps], partners[heaps], most, equal is not None)
    return spread


__all__ = ["MOST", "MOST_PARTNERS", "binomial", "heaped", "order_of", "scattered", "split"]
