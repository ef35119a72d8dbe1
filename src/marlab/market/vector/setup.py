"""Configs as tensors, levels aligned to the end, and who calls whom."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marlab.market.vector.configs import Configs

QUANTITY_MULTIPLIER = 3
"""An offer's quantity goes up to three times the largest number of lines in the world."""


class Setup(NamedTuple):
    """What the market gives, for a batch of worlds. Money and rates have the market's dtype, everything else int32."""

    n_steps: Tensor  # [B]
    n_levels: Tensor  # [B]
    exists: Tensor  # [B, L, A], bool
    first: Tensor  # [B, L], bool: the level that buys from the market
    lines: Tensor  # [B, L, A]
    cost: Tensor  # [B, L, A], money
    balance: Tensor  # [B, L, A], money
    storage: Tensor  # [B, L, A], rate
    shortfall: Tensor  # [B, T, L, A], rate
    catalogue: Tensor  # [B, L + 1], money; product k is the input of level k
    supply_units: Tensor  # [B, T, A]
    supply_price: Tensor  # [B, T, A]
    demand_units: Tensor  # [B, T, A]
    demand_price: Tensor  # [B, T, A]
    quantity_max: Tensor  # [B]

    @property
    def shape(self) -> tuple[int, int, int]:
        """B, L, A."""
        worlds, levels, wide = self.lines.shape
        return worlds, levels, wide

    def select(self, worlds: Tensor) -> Setup:
        """Some of the worlds, in the same shapes."""
        return Setup(*(field[worlds] for field in self))


def make_setup(
    configs: Configs,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    shape: tuple[int, int, int] | None = None,
) -> Setup:
    """Tensors of configs. `shape`: levels, factories a level and days to pad to; by default the largest there are."""
    levels, wide, days = shape or (
        int(configs.n_levels.max()),
        int(configs.sizes.max()),
        int(configs.n_steps.max()),
    )
    natural = configs.resized(levels, wide, days)
    offset = levels - natural.n_levels  # [B], where level 0 stands
    source = np.arange(levels) - offset[:, None]  # [B, L], the natural level of each index; negative: none
    rows = np.arange(len(natural))[:, None]

    def aligned(values: np.ndarray, products: bool = False) -> np.ndarray:
        """Natural levels (or products) moved to the end; what stands before the first is 0."""
        index = np.arange(levels + 1) - offset[:, None] if products else source
        there = index >= 0
        moved = values[rows, np.maximum(index, 0)]
        return np.where(there.reshape(there.shape + (1,) * (moved.ndim - 2)), moved, 0)

    def whole(values: np.ndarray) -> Tensor:
        return torch.as_tensor(values.astype(np.int32), device=device)

    def money(values: np.ndarray) -> Tensor:
        return torch.as_tensor(values.astype(np.float64), device=device).to(dtype)

    exists = aligned(natural.exists).astype(bool)
    lines = aligned(natural.lines)
    return Setup(
        whole(natural.n_steps), whole(natural.n_levels),
        torch.as_tensor(exists, device=device), torch.as_tensor(source == 0, device=device),
        whole(lines), money(aligned(natural.cost)), money(aligned(natural.balance)), money(aligned(natural.storage)),
        money(aligned(natural.shortfall).transpose(0, 3, 1, 2)), money(aligned(natural.catalogue, products=True)),
        whole(natural.supply_units.transpose(0, 2, 1)), whole(natural.supply_price.transpose(0, 2, 1)),
        whole(natural.demand_units.transpose(0, 2, 1)), whole(natural.demand_price.transpose(0, 2, 1)),
        whole(QUANTITY_MULTIPLIER * lines.reshape(len(lines), -1).max(1)),
    )  # fmt: skip


def buyer_calls(market: int, levels: int) -> bool:
    """Who calls in the market between `market` and `market + 1`: the last level calls, then every second upstream."""
    return (levels - 2 - market) % 2 == 0


def by_side(threads: Tensor, market: int, levels: int) -> tuple[Tensor, Tensor]:
    """One market's threads [B, C, R, ...] as (seller, buyer, ...) and (buyer, seller, ...)."""
    turned = threads.transpose(1, 2)
    return (turned, threads) if buyer_calls(market, levels) else (threads, turned)


def pairs_of(seats: Tensor) -> tuple[Tensor, Tensor]:
    """Values of seats [B, L, A] beside every thread: the caller's [B, P, C, 1] and the responder's [B, P, 1, R]."""
    levels = seats.shape[1]
    calling = [k + 1 if buyer_calls(k, levels) else k for k in range(levels - 1)]
    answering = [k if buyer_calls(k, levels) else k + 1 for k in range(levels - 1)]
    return seats[:, calling, :, None], seats[:, answering, None, :]
