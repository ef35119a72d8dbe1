"""The learned agent in the simulator: untrained it is the rule, and it sees what the vector market sees."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.agent.layers import find_learned, load_habits, load_layers
from marlab.market.agent.settings import AgentSettings
from marlab.market.networks import around as network
from marlab.market.online.net import AroundRule
from marlab.market.online.player import Player
from marlab.market.rules import around
from marlab.market.rules.habits import USUAL
from marlab.market.simulator.evidence import played
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.setup import make_setup
from marlab.market.verify.plan import spec_of

OURS = "marlab.market.agent.agent:LitaAgentHRL"
PROCESSES = (0,) * 3 + (1,) * 3 + (2,) * 3


def world(agent: str, days: int = 5) -> np.ndarray:
    agents = [agent] * 9
    agents[7] = agents[5] = "SyncRandomStdAgent"
    agents[8] = "RandomStdAgent"
    return played(spec_of("w", random.Random(3), PROCESSES, tuple(agents), days)).balance


def test_untrained_play_is_the_rule() -> None:
    rule = world(f'{OURS}(mode="heuristic")')
    assert np.array_equal(rule, world(f'{OURS}(mode="learned", weights="untrained")'))


def test_weights_change_play_and_are_found_in_a_run(tmp_path: Path) -> None:
    net = network.untrained()
    bias = net.layers[0][1]
    bias[4:11] = [0, 9, 0, 0, 0, 0, 0]  # always lots of one unit
    (tmp_path / "checkpoints").mkdir()
    network.save(tmp_path / "checkpoints" / "around.npz", net)
    settings = AgentSettings(mode="learned", weights=tmp_path)
    assert load_layers(settings).l1.rules == "economic"
    rule = world(f'{OURS}(mode="heuristic")', 4)
    assert not np.array_equal(rule, world(f'{OURS}(mode="learned", weights="{tmp_path}")', 4))


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"nothing")
    with pytest.raises(UserError, match="is damaged or not a network around the rule"):
        load_layers(AgentSettings(mode="learned", weights=tmp_path / "a.npz"))
    with pytest.raises(UserError, match="Nothing learnt is at"):
        load_layers(AgentSettings(mode="learned", weights=tmp_path / "b.npz"))
    with pytest.raises(UserError, match="leave rule out"):
        load_layers(AgentSettings(mode="learned", weights="untrained", rule={"hold": 3}))


def test_a_learner_sees_the_same_in_the_simulator_and_in_the_vector_market(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[np.ndarray] = []
    inputs = around.inputs

    def noted(sale: around.Sale, *others: Any) -> Any:
        x = inputs(sale, *others)
        there = np.asarray(sale.threads.there)
        seen.append(np.asarray(x, np.float64)[there])
        return x

    monkeypatch.setattr(around, "inputs", noted)
    agents = (f'{OURS}(mode="learned", weights="untrained")',) * 9
    world = played(spec_of("w", random.Random(5), PROCESSES, agents, 6))
    real = np.concatenate(seen)
    seen.clear()
    market = Market(make_setup(world.config, torch.float64))
    every = torch.ones_like(market.setup.exists)
    rule = RuleW(market)
    net = AroundRule((4,), 8, 3.0, torch.Generator().manual_seed(0))
    play(market, Seated(market, every.long(), {-1: rule, 1: Player(market, rule, every, net, None)}, None))
    assert np.allclose(market.balance[market.setup.exists].numpy(), world.balance[-1])  # the same world
    ours = np.concatenate(seen)
    known = {row.tobytes() for row in np.round(real, 5) + 0.0}
    missing = [row for row in np.round(ours, 5) + 0.0 if row.tobytes() not in known]
    assert len(ours) > 80
    # a number on the edge of the fifth digit may be rounded to either side
    assert all(np.abs(real - row).max(1).min() < 2e-5 for row in missing)


def test_the_shipped_habits_are_the_rule_but_at_middle_levels() -> None:
    first, middle, direct = load_habits(find_learned(None))
    assert first == direct == USUAL and middle != USUAL
