"""What waiting is worth (`rules.bargain.worth_waiting`) as one kernel: every thread's sum stays in registers."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from marlab.market.rules.bargain import FEW_OFFERS
from marlab.market.rules.prospects import Fitting

Tensor = Any
BLOCK = 64
"""Threads of a program."""
MOST = 32
"""Offers of a day, rounded up to a power of two."""


@triton.jit
def _worth(  # type: ignore[no-untyped-def]  # pragma: no cover
    units, price, ahead, place, room, cost, least, money, fits, known, taken, lot, leaving, out,
    total, partners, remembered, slots, cells, first, heard, rounds, few,
    SEARCH: tl.constexpr, BLOCK: tl.constexpr, MOST: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    valid = i < total
    row = i // partners
    at = tl.load(place + i, valid, 0)
    t = tl.arange(0, MOST)
    half = (first + 2 * t).to(tl.int64)
    where = half[None, :] * cells + at[:, None]
    asked = valid[:, None] & (t < heard)[None, :]
    lots = tl.load(units + where, asked, 0)
    there = lots > 0
    each = tl.load(price + where, there, 0)
    day = tl.load(ahead + where, there, 0)
    free = tl.load(room + row[:, None] * slots + tl.minimum(day, slots - 1), there, 0.0)
    unit_cost = tl.load(cost + row, valid, 0.0)
    size = lots.to(free.dtype)
    fitting = there & (day < slots) & (size <= free)
    brings = tl.where(fitting, size * (each.to(free.dtype) - unit_cost[:, None]), 0.0)
    one = there.to(free.dtype)
    before = tl.load(known + i, valid, 0.0)
    count = before + tl.sum(one, 1)
    chance = tl.load(taken + i, valid, 0.0)
    sure = chance * tl.load(lot + i, valid, 0.0)
    going_on = (1 - chance) * (1 - tl.load(leaving + i, valid, 0.0)) / tl.maximum(count, 1.0)
    sums = i * (remembered + 1)
    all_fits = tl.load(fits + sums + remembered, valid, 0.0)
    worth = tl.zeros([BLOCK], free.dtype)
    for _ in range(rounds):
        low = tl.zeros([BLOCK], tl.int32)
        high = low + remembered
        for _ in range(SEARCH):  # the first place whose value is not smaller
            middle = (low + high) // 2
            smaller = (low < high) & (tl.load(least + i * remembered + middle, valid & (low < high), 0.0) < -worth)
            high = tl.where((low < high) & ~smaller, middle, high)
            low = tl.where(smaller, middle + 1, low)
        fit = tl.load(fits + sums + low, valid, 0.0)
        best = tl.load(money + sums + low, valid, 0.0) + worth * (all_fits - fit)
        best = best + tl.maximum(worth, 0.0) * (before - all_fits)
        best = best + tl.sum(tl.maximum(brings, worth[:, None]) * one, 1)
        worth = sure + going_on * best
    tl.store(out + i, tl.where(count >= few, worth, float("nan")), valid)


def worth(
    offers: tuple[Tensor, Tensor, Tensor], place: Tensor, first: int, heard: int, room: Tensor, cost: Tensor,
    before: Fitting, chances: tuple[Tensor, Tensor, Tensor], rounds: int,
) -> Tensor:  # fmt: skip
    """[N, K] as `bargain.waiting`: `offers` [HALVES, cells] of today, in half-rounds `first`, `first` + 2, ...

    `place` [N, K]: where threads are among the cells; `heard`: how many half-rounds there were; `rounds` that are left.
    """
    least, money, fits, known = (values.contiguous() for values in before)
    taken, lot, leaving = (values.contiguous() for values in chances)
    out: Tensor = torch.empty_like(taken)
    total, slots, remembered = out.numel(), room.shape[-1], least.shape[-1]
    if total:
        _worth[(triton.cdiv(total, BLOCK),)](
            *offers, place.contiguous(), room.contiguous(), cost.contiguous(), least, money, fits, known,
            taken, lot, leaving, out, total, place.shape[-1], remembered, slots, offers[0][0].numel(), first, heard,
            rounds, float(FEW_OFFERS), SEARCH=remembered.bit_length(), BLOCK=BLOCK, MOST=MOST, enable_fp_fusion=False,
        )  # fmt: skip
    return out
