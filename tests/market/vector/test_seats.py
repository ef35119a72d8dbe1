"""Threads, commitments and needs from the side of a factory."""

from __future__ import annotations

import torch

from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES
from marlab.market.vector.seats import CONSUMERS, SUPPLIERS, Seats, commitments, movers, moving, needs_of
from tests.market.vector_worlds import moves, sign, small_market


def test_every_thread_is_seen_from_both_ends() -> None:
    market = small_market((2, 3, 2))
    seats = Seats(market)
    threads = torch.arange(2 * 9).reshape(1, 2, 3, 3) + 1
    seen = seats.every(threads)  # [1, L, A, 2, A]
    for level in (0, 1):
        for seller in range(3):
            for buyer in range(3):
                assert seen[0, level, seller, CONSUMERS, buyer] == seen[0, level + 1, buyer, SUPPLIERS, seller]
    assert (seen[0, 0, :, SUPPLIERS] == 0).all() and (seen[0, 2, :, CONSUMERS] == 0).all()
    assert seen[0, 0, 1, CONSUMERS, 2] == threads[0, 0, 1, 2]  # level 0 calls: caller 1, responder 2
    assert seen[0, 2, 1, SUPPLIERS, 2] == threads[0, 1, 1, 2]  # level 2 calls
    for half in (0, 1):
        assert torch.equal(seats.threads(seen, half), threads)


def test_rows_gather_their_own_threads() -> None:
    market = small_market((2, 3, 2))
    threads = torch.arange(2 * 9).reshape(1, 2, 3, 3)
    chosen = torch.zeros((1, 3, 3), dtype=torch.bool)
    chosen[0, 1, 2] = chosen[0, 2, 0] = True
    seats = Seats(market)
    rows = seats.rows(chosen)
    assert len(rows) == 2 and rows.level.tolist() == [1, 2] and rows.place.tolist() == [2, 0]
    assert torch.equal(rows.gather(threads)[0], seats.every(threads)[0, 1, 2])
    assert rows.sides.tolist() == [[True, True], [True, False]]


def test_who_moves() -> None:
    assert movers(3, 0) == [2, 0] and movers(3, 1) == [1] and movers(4, 2) == [3, 1] and movers(2, 3) == [0]
    market = small_market((2, 1, 1))
    market.open_day()
    assert moving(market).int().sum(2).tolist() == [[2, 0, 1]]
    market.move(moves(market, 1, 5, 20))  # 20 is no price of the second market: it ends
    assert moving(market).int().sum(2).tolist() == [[0, 1, 0]]


def test_commitments_and_needs_by_hand() -> None:
    market = small_market((1, 1), days=20, supply_units=[[9] * 20], supply_price=[[10] * 20],
                          demand_units=[[7] * 20], demand_price=[[30] * 20])  # fmt: skip
    sign(market, 4, 20, 3)
    market.close_day()
    sign(market, 5, 20, 0)
    rows = Seats(market).rows(market.setup.exists)
    signed = commitments(market, rows)
    assert signed.sales[0].tolist() == [5, 0, 4, *[0] * 8] and signed.supplies[1].tolist() == [5, 0, 4, *[0] * 8]
    assert signed.supplies[0].sum() == 0 and signed.sales[1].sum() == 0
    needs = needs_of(market, rows, signed)
    # the first level has 9 in stock and 9 from outside and has sold 5; the last owes 7 and has bought 5
    assert needs.sales.tolist() == [13, 0] and needs.supplies.tolist() == [0, 2]


def test_shapes_hold_for_a_whole_day() -> None:
    market: Market = small_market((2, 2))
    market.open_day()
    for half in range(HALVES):
        assert market.half == half and moving(market).sum() == 2
        market.move(moves(market, 1, 5, 20))
