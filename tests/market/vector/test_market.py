"""Days of small markets by hand, worlds of different lengths, going on from a state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from marlab.market.vector.configs import join, shipped
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES, OFFER, Moves
from marlab.market.vector.setup import make_setup
from tests.market.vector_worlds import moves, sign, small_config, small_market


def from_outside(days: int = 3, **changes: list[int]) -> dict[str, Any]:
    return {name: np.array([values], np.int64) for name, values in changes.items()}


def test_a_chain_of_two_by_hand() -> None:
    """Supplies of 8 at 10; 6 are sold at 20 to the last level, which owes 5 at 40 to the market."""
    given = from_outside(supply_units=[8, 0, 0], supply_price=[10] * 3, demand_units=[5, 0, 0], demand_price=[40] * 3)
    market = small_market(**given)
    sign(market, 6, 20)
    evening = market.close_day()
    assert evening.produced.flatten().tolist() == [6, 5]
    # 6 x 20 sold - 80 bill - 6 x 2 - 2 left x .1 x 10; 5 x 40 - 120 - 10 - 1 left x .1 x 20
    assert market.balance.flatten().tolist() == [1000 + 120 - 80 - 12 - 2, 1000 + 200 - 120 - 10 - 2]
    assert market.stock.flatten().tolist() == [2, 1]
    price = [(45 * 10 + 80) / 53, (45 * 20 + 120) / 51, (45 * 30 + 200) / 50]
    assert market.prices[0].tolist() == pytest.approx(price)
    assert market.scores().flatten().tolist() == [1.026, 1.068]


def test_stock_is_never_consumed() -> None:
    market = small_market(**from_outside(demand_units=[0, 4, 4], demand_price=[40] * 3))
    sign(market, 4, 20)
    for _ in range(3):
        market.close_day()
        assert market.stock[0, 1].item() == 4
        market.open_day()
    assert not market.playing.any()


def test_bankruptcy_ends_negotiations_and_contracts_of_both_sides() -> None:
    """On the first day 5 x 22 are paid out of 10; the contract for the day after is void for the seller too."""
    balance = np.array([[1000.0], [10.0]])
    market = small_market(
        days=4,
        balance=balance,
        **from_outside(4, supply_units=[9] * 4, supply_price=[10] * 4, demand_units=[0] * 4, demand_price=[0] * 4),
    )
    sign(market, 5, 22, 1)
    market.close_day()
    sign(market, 5, 20, 1)
    market.close_day()  # the first contract is delivered and paid
    assert market.bankrupt.flatten().tolist() == [False, True]
    market.open_day()
    assert not market.threads.running.any()
    assert market.books.units[market.books.slot].sum() == 5  # still listed, as agents see it
    evening = market.close_day()
    assert evening.revenue.sum() == 0 and evening.purchases.sum() == 0 and evening.shortfall.sum() == 0


def test_worlds_of_all_lengths_end_by_themselves() -> None:
    market = Market(make_setup(join([small_config((1, 1), 2), small_config((1, 1, 2), 4)]), torch.float64))
    seen = []
    while market.playing.any():
        market.open_day()
        seen.append(market.threads.running.flatten(1).any(1).tolist())
        market.close_day()
    assert seen == [[True, True], [True, True], [False, True], [False, True]]
    assert market.day.tolist() == [2, 4]
    assert market.scores().isnan().sum() == 2 * 6 - 2 - 4


def random_moves(market: Market, generator: torch.Generator) -> Moves:
    """Anything, sometimes out of range."""

    def draw(low: int, high: int) -> torch.Tensor:
        return torch.randint(low, high, market.threads.units.shape, generator=generator, dtype=torch.int32)

    mean = market.prices[:, 1:-1, None, None].to(torch.int32)
    return Moves((draw(0, 20) > 2).int() * OFFER, draw(1, 31), mean + draw(-2, 2), draw(0, 11))


def play(market: Market, days: int, generator: torch.Generator) -> None:
    for _ in range(days):
        market.open_day()
        for _ in range(HALVES):
            market.move(random_moves(market, generator))
        market.close_day()


def test_a_market_goes_on_from_its_state() -> None:
    setup = make_setup(shipped().take(range(6)), torch.float64)
    market, generator = Market(setup), torch.Generator().manual_seed(1)
    play(market, 6, generator)
    market.open_day()
    market.move(random_moves(market, generator))
    state, draws = market.get_state(), generator.get_state()
    play(market, 5, generator)
    again = Market(setup)
    again.set_state(state)
    generator.set_state(draws)
    play(again, 5, generator)
    for name, value in market.get_state().items():
        assert np.array_equal(value, again.get_state()[name]), name


def test_a_world_does_not_depend_on_its_neighbours_nor_on_padding() -> None:
    configs = shipped().take([3])
    alone, padded = (
        Market(make_setup(configs, torch.float64)),
        Market(make_setup(configs, torch.float64, shape=(4, 8, 200))),
    )
    generator = torch.Generator().manual_seed(2)
    for _ in range(15):
        alone.open_day()
        padded.open_day()
        for _ in range(HALVES):
            given = random_moves(alone, generator)
            wide = [torch.zeros_like(padded.threads.units) for _ in range(4)]
            levels, a = alone.levels - 1, alone.wide
            for full, part in zip(wide, given):
                full[:, -levels:, :a, :a] = part
            alone.move(given)
            padded.move(Moves(*wide))
        alone.close_day()
        padded.close_day()
    assert torch.equal(alone.balance, padded.balance[:, -alone.levels :, : alone.wide])


def test_new_worlds_begin_while_others_go_on() -> None:
    configs = shipped().take([0, 1, 2, 3])
    setup = make_setup(configs, torch.float64)
    market, generator = Market(setup), torch.Generator().manual_seed(3)
    play(market, 7, generator)
    kept = market.balance[2:].clone()
    market.restart(torch.tensor([True, True, False, False]), setup)
    assert market.day.tolist() == [0, 0, 7, 7] and torch.equal(market.balance[2:], kept)
    assert torch.equal(market.balance[:2], setup.balance[:2]) and market.books.units[:, :2].sum() == 0
    play(market, 30, generator)
    fresh = Market(setup)
    assert market.day.tolist() == [30, 30, 37, 37] and fresh.day.sum() == 0


def test_all_float_dtypes_play() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        market = Market(make_setup(shipped().take([0]), dtype))
        play(market, 2, torch.Generator().manual_seed(4))
        assert market.balance.dtype == dtype and market.balance.isfinite().all()


def test_moves_of_one_market_by_hand() -> None:
    market = small_market((1, 1, 1))
    market.open_day()
    assert market.ranges.price_low.flatten().tolist() == [18, 27] and market.ranges.price_high.flatten().tolist() == [
        22,
        33,
    ]
    assert market.ranges.ahead_max.item() == 2 and market.ranges.units_max.item() == 30
    market.move(moves(market, OFFER, 3, 20))  # 20 is no price of the second product
    assert market.threads.running.flatten().tolist() == [True, False]
