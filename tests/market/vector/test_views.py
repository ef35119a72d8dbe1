"""Mornings as DayStates: every field of every factory and day, against what the simulator told its agents."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.logs.daystate import DayState
from marlab.market.vector.replay import replay_moves
from marlab.market.vector.seats import Seats
from marlab.market.vector.views import Mornings
from tests.market.vector_worlds import recorded_worlds, sign, small_market


def test_every_morning_is_as_the_simulator_told_it() -> None:
    worlds = recorded_worlds()[2:5]
    for world, again in zip(worlds, replay_moves(worlds)):
        assert again.mornings is not None and again.mornings.shape == world.mornings.shape
        np.testing.assert_allclose(again.mornings, world.mornings, rtol=1e-9, atol=1e-9)


def test_contracts_of_the_day_enter_and_needs_stay_those_of_the_morning() -> None:
    market = small_market((1, 1), days=9, supply_units=[[9] * 9], supply_price=[[10] * 9])
    mornings, rows = Mornings(market), Seats(market).rows(market.setup.exists)
    market.open_day()
    mornings.open(market)
    before: DayState = mornings.at(market, rows)
    assert before.needed_sales.tolist() == [9, 0] and before.q_out.sum() == 0
    sign(market, 4, 20, 2)
    after = mornings.at(market, rows)
    assert after.needed_sales.tolist() == [9, 0] and after.q_out[0].tolist() == [0, 0, 4, *[0] * 8]
    assert after.pay[1, 2] == 80 and after.receive[0, 2] == 80
    assert after.exogenous_in_mean.tolist() == [9, 0] and after.exogenous_reach[0].tolist() == [1] * 9 + [0]


@pytest.mark.parametrize("alive", [False, True])
def test_sales_to_bankrupt_consumers_can_be_left_out(alive: bool) -> None:
    market = small_market((1, 2), days=9)
    sign(market, 4, 20, 2)
    market.bankrupt[0, 1, 1] = True
    rows = Seats(market).rows(market.setup.exists)
    state = Mornings(market, torch.float64).at(market, rows, alive=alive)
    assert state.q_out[0, 2] == (4 if alive else 8) and state.receive[0, 2] == (80 if alive else 160)
