"""Rule W as arrays in all seats: the same contracts as LitaAgentHRL signed in the simulator."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.logs.worldlog import TIMED_OUT
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.market import Market
from marlab.market.vector.replay import play_rule
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.setup import make_setup
from tests.market.vector_worlds import recorded_worlds


def test_the_first_day_of_a_world_is_equal() -> None:
    world = recorded_worlds()[1]
    market = Market(make_setup(world.config, torch.float64))
    policy = Seated(market, torch.ones_like(market.setup.lines), {1: RuleW(market)}, None)
    play(market, policy, days=1)
    np.testing.assert_allclose(market.balance[market.setup.exists].numpy(), world.balance[1], rtol=1e-9)
    running = market.threads.running
    talks = world.tables["negotiations"]
    assert running.sum() == ((talks["day"] == 0) & (talks["outcome"] == TIMED_OUT)).sum() > 0


@pytest.mark.long
def test_a_whole_world_is_equal_to_the_last_contract() -> None:
    world = recorded_worlds()[1]
    again = play_rule([world])[0]
    np.testing.assert_allclose(again.balance, world.balance, rtol=1e-9)
    np.testing.assert_allclose(again.prices, world.prices, rtol=1e-9)
    assert (world.tables["contracts"]["negotiation"] >= 0).sum() > 10
