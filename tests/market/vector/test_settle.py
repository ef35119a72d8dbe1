"""Evenings against the plain settlement of `simulator/settlement.py`, which knows no tensors, on random days."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.simulator.settlement import Due, Rates, settle_day
from marlab.market.vector.books import PRICE_SHIFT, RANK_SHIFT, SLOTS
from marlab.market.vector.settle import Outside, Traded, new_prices, settle
from marlab.market.vector.settle import Rates as VectorRates


def random_day(seed: int, wide: int = 3) -> tuple[Traded, Outside, VectorRates, torch.Tensor, torch.Tensor]:
    """64 worlds of three levels; about a third of the places hold a contract, and cash is short in half of them."""
    draw = np.random.default_rng(seed)
    shape = (64, 2, wide, wide, SLOTS)
    units = draw.integers(1, 9, shape) * (draw.random(shape) < 0.3)
    price = draw.integers(8, 12, shape) * (units > 0)
    rank = np.broadcast_to(draw.permuted(np.arange(wide * wide))[: wide * wide].reshape(wide, wide, 1), shape)
    lots = (price << PRICE_SHIFT) | (np.where(units > 0, rank, 0) << RANK_SHIFT) | units
    seats = (64, 3, wide)
    first, last = np.arange(3)[:, None] == 0, np.arange(3)[:, None] == 2
    outside = [
        draw.integers(0, 12, seats) * first,
        10 * np.ones(seats, int) * first,
        draw.integers(0, 12, seats) * last,
        draw.integers(20, 30, seats) * last,
    ]
    balance = draw.choice([-5.0, 40.0, 150.0, 300.0, 5000.0], seats) + draw.random(seats)
    rates = (np.full(seats, 10), draw.integers(1, 9, seats) * 1.0, draw.random(seats), draw.random(seats) * 9)
    stock = draw.integers(0, 6, seats)
    whole = [torch.as_tensor(v.astype(np.int32)) for v in (units.sum(-1), (units * price).sum(-1), lots, *outside)]
    return (
        Traded(whole[0], whole[1], whole[2], torch.as_tensor(draw.permutation(SLOTS))),
        Outside(*whole[3:]),
        VectorRates(torch.as_tensor(rates[0].astype(np.int32)), *(torch.as_tensor(r) for r in rates[1:])),
        torch.as_tensor(balance),
        torch.as_tensor(stock.astype(np.int32)),
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_days_are_settled_as_one_by_one(seed: int) -> None:
    traded, outside, rates, balance, stock = random_day(seed)
    evening = settle(traded, outside, rates, balance, stock)
    lots = traded.lots.numpy()
    for world, level, f in np.ndindex(*balance.shape):
        at = (world, level, f)
        # market 0: sellers of level 0 call; market 1: buyers of level 2 call
        bought = [] if level == 0 else lots[world, level - 1][:, f] if level == 1 else lots[world, 1][f]
        sold = [] if level == 2 else lots[world, 0][f] if level == 0 else lots[world, 1][:, f]
        due = Due(
            _in_order(bought, traded.age.numpy()),
            [(float(outside.in_price[at]), int(outside.in_units[at]))],
            _in_order(sold, traded.age.numpy()),
            [(float(outside.out_price[at]), int(outside.out_units[at]))],
        )
        one = settle_day(due, int(stock[at]), float(balance[at]), Rates(*(rate[at].item() for rate in rates)))
        for name in ("revenue", "supply", "purchases", "production", "storage", "penalty", "produced", "shortfall"):
            assert float(getattr(evening, name)[at]) == pytest.approx(getattr(one, name), abs=1e-9), (at, name)
        assert float(evening.profit[at]) == pytest.approx(one.profit, abs=1e-9)
        assert int(stock[at]) + max(0, int(evening.arrived[at] - evening.produced[at])) == one.stock


def _in_order(lots: np.ndarray | list[int], age: np.ndarray) -> list[tuple[float, float]]:
    """(price, units) of contracts in the order of signing: by day, then by rank."""
    found = []
    for (_, slot), lot in np.ndenumerate(np.asarray(lots).reshape(-1, SLOTS)):
        if lot:
            found.append((age[slot], (lot >> RANK_SHIFT) & 511, float(lot >> PRICE_SHIFT), int(lot & 63)))
    return [(price, units) for _, _, price, units in sorted(found, key=lambda row: row[:2])]


def test_the_cheapest_lots_are_paid_first_and_the_older_of_two_equals() -> None:
    """Cost 10; 3 units at 10 were bought on the first day, 2 at 10 on the second, 1 at 9 on the third."""
    lots = torch.zeros((1, 1, 1, 1, SLOTS), dtype=torch.int32)
    for slot, units, price in ((0, 3, 10), (1, 2, 10), (2, 1, 9)):
        lots[..., slot] = (price << PRICE_SHIFT) | units
    one = torch.ones((1, 2, 1))
    no = torch.zeros((1, 2, 1), dtype=torch.int32)
    owed = torch.tensor([[[0], [9]]], dtype=torch.int32)
    rates = VectorRates(no + 10, 10.0 * one, 0 * one, 0 * one)
    six, paid = torch.tensor([[[[6]]]], dtype=torch.int32), torch.tensor([[[[59]]]], dtype=torch.int32)
    traded = Traded(six, paid, lots, torch.arange(SLOTS))
    evening = settle(traded, Outside(no, no, owed, owed), rates, 100.0 * one, no)
    assert evening.produced[0, 1, 0] == 6  # 9 + 30 + 2 x 20 = 79 <= 100: everything
    evening = settle(traded, Outside(no, no, owed, owed), rates, 75.0 * one, no)
    assert evening.produced[0, 1, 0] == 1 + 3 + (75 - 39) // 20


def test_trading_prices_forget_and_stand_still() -> None:
    prices, weight = torch.tensor([[10.0, 20.0]]), torch.tensor([[50.0, 50.0]])
    new, later = new_prices(prices, weight, torch.tensor([[5.0, 0.0]]), torch.tensor([[60.0, 0.0]]))
    assert new.tolist() == [[pytest.approx((45 * 10 + 60) / 50), 20.0]] and later.tolist() == [[50.0, 50.0]]
