"""Greedy as arrays, by hand where its moves are certain. Frequencies beside the real one: tests/market/verify."""

from __future__ import annotations

import torch

from marlab.market.vector.builtin import Seated
from marlab.market.vector.greedy import Greedy
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, OFFER
from marlab.market.vector.setup import make_setup
from tests.market.vector_worlds import moves, small_config

DAYS = 20


def market_of(worlds: int, demand: int) -> tuple[Market, Seated]:
    """Two sellers, who have 9 units a day, and two buyers, of whom the market wants `demand`."""
    outside = {
        "supply_units": [[9] * DAYS] * 2,
        "supply_price": [[10] * DAYS] * 2,
        "demand_units": [[demand] * DAYS] * 2,
        "demand_price": [[30] * DAYS] * 2,
    }
    market = Market(make_setup(small_config((2, 2), DAYS, **outside).take([0] * worlds)))
    generator = torch.Generator().manual_seed(6)
    policy = Seated(market, torch.ones_like(market.setup.lines), {1: Greedy(generator)}, generator)
    market.open_day()
    policy.open(market)
    return market, policy


def test_it_opens_with_the_best_price_and_up_to_its_need() -> None:
    market, policy = market_of(300, demand=6)
    first = policy(market)
    assert (first.op == OFFER).all() and (first.price == 18).all() and (first.ahead == 0).all()
    assert first.units.min() == 1 and first.units.max() == 6
    counts = first.units.flatten().long().bincount()[1:] / first.units.numel()
    assert (counts - 1 / 6).abs().max() < 0.05


def test_who_needs_nothing_today_asks_for_a_later_day() -> None:
    market, policy = market_of(300, demand=0)
    first = policy(market)
    assert (first.op == OFFER).all() and first.ahead.min() == 1 and first.ahead.max() == 10
    assert first.units.max() <= 7 and (first.units <= 10 * first.ahead).all()


def test_sellers_take_the_highest_price_while_they_have_units() -> None:
    market, policy = market_of(50, demand=6)
    market.move(moves(market, OFFER, 5, 22))
    answers = policy(market)
    assert (answers.op[..., 0, :] == ACCEPT).all()  # nine units: the second buyer's five no longer fit
    assert (answers.op[..., 1, :] == OFFER).all() and (answers.units[..., 1, :] <= 4).all()
    market, policy = market_of(50, demand=6)
    market.move(moves(market, OFFER, 5, 18))
    assert (policy(market).op == OFFER).all()  # the lowest price is not taken in the first round
