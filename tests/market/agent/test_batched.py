"""LitaAgentHRL in the vector market: it answers as the agent does in the simulator."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from marlab.market.agent.batched import Batched
from marlab.market.agent.settings import AgentSettings
from marlab.market.simulator.worlds import WorldSpec
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded, ask, play_rule
from marlab.market.vector.setup import make_setup
from tests.market.vector_worlds import small_config

pytest.importorskip("scml")
PURE = {"residual_off": True, "op_head_off": True}
UNTRAINED = {f"l{layer}_model_path": "untrained" for layer in (2, 3, 4)}


def agent(**settings: Any) -> str:
    return f"LitaAgentHRL({', '.join(f'{name}={value!r}' for name, value in settings.items())})"


@cache
def world(mine: str, other: str, days: int) -> Recorded:
    """Two levels; the last factory has another agent."""
    from marlab.market.simulator.evidence import played

    return played(WorldSpec("test", 9, 10, days, (0, 0, 0, 1, 1, 1, 1), (*(mine,) * 6, other), (True,) * 7))


def compare(days: int, **settings: Any) -> None:
    mine = agent(**settings)
    recorded = world(mine, agent(mode="heuristic"), days)
    asked, different = ask([recorded], lambda m: Batched(m, AgentSettings(**settings)), np.arange(7) < 6)
    assert asked > 10 * days and different == []


@pytest.mark.long
def test_the_network_answers_as_in_the_simulator() -> None:
    compare(4, mode="neural")


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {"mode": "heuristic"},
        {"mode": "heuristic", "rule": {"wait": False, "lot": 1}},
        {"mode": "heuristic", **PURE},
        {"mode": "heuristic", "l1": "guide", **PURE},
        {"mode": "heuristic", "l1": "guide", "l4": "uniform"},
        {"mode": "heuristic", "goal_zero": True, "residual_off": True},
        {"mode": "neural", "learnt": "both", "modulation": True},
        {"mode": "neural", "op_head_off": True, "min_confidence": 0.7},
        {"mode": "neural", "l1": "guide", **UNTRAINED},
    ],
)
def test_every_mode_answers_as_in_the_simulator(settings: dict[str, Any]) -> None:
    compare(5, **settings)


@pytest.mark.long
def test_worlds_of_networks_are_equal_to_the_last_contract() -> None:
    recorded = world(agent(mode="neural"), agent(mode="neural"), 15)
    again = play_rule([recorded], make=lambda m: Batched(m, AgentSettings(mode="neural")))[0]
    np.testing.assert_allclose(again.balance, recorded.balance, rtol=1e-6)
    assert (recorded.tables["contracts"]["negotiation"] >= 0).sum() > 5


@pytest.mark.long
def test_drawn_answers_follow_their_generator() -> None:
    config = small_config((2, 2), 4, supply_units=[[9] * 4] * 2, supply_price=[[10] * 4] * 2,
                          demand_units=[[6] * 4] * 2, demand_price=[[30] * 4] * 2)  # fmt: skip
    settings = AgentSettings(mode="neural", decode="sample", learnt="both")

    def played_with(seed: int) -> torch.Tensor:
        market = Market(make_setup(config.take([0] * 4), torch.float64))
        policy = Batched(market, settings, torch.Generator().manual_seed(seed))
        play(market, Seated(market, torch.ones_like(market.setup.lines), {1: policy}, None), days=2)
        return market.threads.units

    assert torch.equal(played_with(1), played_with(1))
    assert not torch.equal(played_with(1), played_with(2))
