"""The ring of deliveries."""

from __future__ import annotations

import torch

from marlab.market.vector.books import PRICE_SHIFT, SLOTS, UNITS_MASK
from tests.market.vector_worlds import sign, small_market


def test_contracts_wait_for_their_day() -> None:
    market = small_market(days=20)
    for ahead in (10, 0, 8):  # two contracts for day 10, one for day 1
        sign(market, 4, 20, ahead)
        market.books.sign(market.threads)
        assert market.books.units[market.books.order()][ahead].item() == (8 if ahead == 8 else 4)
        market.close_day()
    order = market.books.order()
    units, money = market.books.units[order], market.books.money[order]
    assert units.flatten().tolist() == [0] * 7 + [8] + [0] * 3 and money[7].item() == 160
    lots = market.books.lots[10 % SLOTS].flatten()
    assert sorted((lots & UNITS_MASK).tolist())[-2:] == [4, 4] and set((lots >> PRICE_SHIFT).tolist()) == {0, 20}


def test_ages_begin_with_the_oldest_day_of_signing() -> None:
    market = small_market(days=30)
    for _ in range(13):
        market.open_day()
        market.close_day()
    ages = market.books.ages()
    assert ages[13 % SLOTS] == 10 and ages[3] == 0 and sorted(ages.tolist()) == list(range(11))


def test_books_are_cleared_world_by_world() -> None:
    market = small_market()
    sign(market, 4, 20, 1)
    market.books.sign(market.threads)
    market.books.clear(torch.tensor([False]))
    assert market.books.units.sum() == 4
    market.books.clear(torch.tensor([True]))
    assert market.books.units.sum() == 0 and market.books.lots.sum() == 0
