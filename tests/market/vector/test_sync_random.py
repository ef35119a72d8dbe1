"""SyncRandom as arrays, by hand where its moves are certain. Frequencies beside the real one: tests/market/verify."""

from __future__ import annotations

import torch

from marlab.market.vector.builtin import Seated
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, OFFER
from marlab.market.vector.setup import make_setup
from marlab.market.vector.sync_random import SyncRandom
from tests.market.vector_worlds import moves, small_config

DAYS = 20


def market_of(worlds: int, demand: int, price: int = 30) -> tuple[Market, Seated]:
    """Two sellers and two buyers; the market wants `demand` units of each buyer on every day."""
    outside = {
        "supply_units": [[9] * DAYS] * 2,
        "supply_price": [[10] * DAYS] * 2,
        "demand_units": [[demand] * DAYS] * 2,
        "demand_price": [[price] * DAYS] * 2,
    }
    market = Market(make_setup(small_config((2, 2), DAYS, **outside).take([0] * worlds)))
    generator = torch.Generator().manual_seed(5)
    return market, Seated(market, torch.ones_like(market.setup.lines), {1: SyncRandom(generator)}, generator)


def test_callers_spread_what_they_need_at_their_best_price() -> None:
    market, policy = market_of(500, demand=6)
    market.open_day()
    first = policy(market)  # the last level calls: two buyers, one of two partners is asked about today
    today = (first.op == OFFER) & (first.ahead == 0)
    assert torch.equal(today.sum(3), torch.ones_like(today.sum(3)))
    assert (first.units[today] == 6).all() and (first.price[today] == 18).all()
    later = (first.op == OFFER) & (first.ahead > 0)
    assert later.any() and (first.price[later] >= 18).all() and first.ahead[later].max() <= 10


def test_sellers_take_a_well_priced_offer_below_their_needs() -> None:
    market, policy = market_of(50, demand=6)
    market.open_day()
    market.move(moves(market, OFFER, 4, 22))
    answers = policy(market)
    assert (answers.op == ACCEPT).all()  # two offers of four: 9 are needed, and 5 after the first
    market.open_day()
    market.move(moves(market, OFFER, 5, 22))
    answers = policy(market)
    assert (answers.op[..., 0, :] == ACCEPT).all() and (answers.op[..., 1, :] != ACCEPT).all()  # 5 is not below 4
    market.open_day()
    market.move(moves(market, OFFER, 4, 18))
    assert (policy(market).op != ACCEPT).all()  # too cheap in the first round


def test_who_needs_nothing_leaves() -> None:
    market, policy = market_of(50, demand=0)
    market.setup.n_steps.fill_(1)  # no later days
    market.open_day()
    first = policy(market)
    assert (first.units == 0).all() and (first.op != OFFER).all()
