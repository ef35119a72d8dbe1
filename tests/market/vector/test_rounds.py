"""Half-rounds by hand: what is signed, what ends a negotiation, what runs on."""

from __future__ import annotations

import pytest
import torch

from marlab.market.vector.rounds import ACCEPT, END, HALVES, OFFER
from tests.market.vector_worlds import moves, small_market


def test_an_accepted_offer_is_signed_and_ends_the_negotiation() -> None:
    market = small_market()
    market.open_day()
    market.move(moves(market, OFFER, 5, 21, 1))
    market.move(moves(market, OFFER, 7, 20, 2))
    market.move(moves(market, ACCEPT))
    threads = market.threads
    assert not threads.running.any() and threads.fresh.all()
    assert (threads.agreed_units, threads.agreed_price, threads.agreed_ahead) == (7, 20, 2)
    assert threads.agreed_half == 2 and threads.ended_half == 2
    market.move(moves(market, OFFER, 3, 20))  # nobody listens any more
    assert not threads.running.any() and threads.agreed_units == 7


@pytest.mark.parametrize(
    ("units", "price", "ahead", "right"),
    [
        (1, 18, 0, True), (30, 22, 2, True),
        (0, 20, 0, False), (31, 20, 0, False), (5, 17, 0, False), (5, 23, 0, False), (5, 20, -1, False),
        (5, 20, 3, False),
    ],
)  # fmt: skip
def test_an_offer_outside_of_the_ranges_ends_the_negotiation(units: int, price: int, ahead: int, right: bool) -> None:
    """Trading price 20, three days: quantity 1..30, price 18..22, delivery today or in one or two days."""
    market = small_market()
    market.open_day()
    market.move(moves(market, OFFER, units, price, ahead))
    assert bool(market.threads.running.all()) is right
    assert int(market.threads.ended_half) == (HALVES if right else 0)


def test_ending_and_accepting_nothing_end_it_too() -> None:
    for op in (END, ACCEPT):
        market = small_market()
        market.open_day()
        market.move(moves(market, op, 5, 20))
        assert not market.threads.running.any() and market.threads.agreed_units == 0


def test_after_twenty_rounds_it_is_over() -> None:
    market = small_market()
    market.open_day()
    for _ in range(HALVES):
        market.move(moves(market, OFFER, 5, 20))
    assert market.half == HALVES and market.threads.running.all() and market.threads.ended_half == HALVES
    market.close_day()
    assert market.books.units.sum() == 0


def test_threads_are_independent() -> None:
    market = small_market((2, 2))
    market.open_day()
    market.move(moves(market, OFFER, 5, 20))
    answer = moves(market, OFFER, 6, 20)
    answer.op[0, 0, 0, 1] = ACCEPT
    answer.op[0, 0, 1, 0] = END
    market.move(answer)
    assert market.threads.running[0, 0].tolist() == [[True, False], [False, True]]
    assert market.threads.agreed_units[0, 0].tolist() == [[0, 5], [0, 0]]
    assert market.threads.units[0, 0, 0, 0] == 6
    assert market.threads.units.dtype == torch.int32
