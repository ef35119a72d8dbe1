"""The learned agent in the simulator: untrained it is the rule, and it sees what the vector market sees."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.agent.layers import load_layers
from marlab.market.agent.settings import AgentSettings
from marlab.market.networks import around as network
from marlab.market.rules import around
from marlab.market.simulator.evidence import played
from marlab.market.verify.plan import spec_of
from tests.market.beliefs_cases import random_observer

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


def test_it_asks_itself_who_its_partners_are(tmp_path: Path) -> None:
    observer = random_observer(2)
    weight = np.zeros((around.CHOICES, around.INPUTS + 5))
    net = network.AroundNet(((weight, np.zeros(around.CHOICES)),), observer=observer)
    network.save(tmp_path / "a.npz", net)
    believing = f'{OURS}(mode="learned", weights="{tmp_path / "a.npz"}")'
    assert np.array_equal(world(f'{OURS}(mode="heuristic")', 4), world(believing, 4))
    weight[5, -5:] = 9  # lots of one unit for everybody who may be somebody
    network.save(tmp_path / "a.npz", net)
    load_layers.__globals__["_loaded"].cache_clear()
    assert not np.array_equal(world(f'{OURS}(mode="heuristic")', 4), world(believing, 4))


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"nothing")
    with pytest.raises(UserError, match="does not hold a network around the rule"):
        load_layers(AgentSettings(mode="learned", weights=tmp_path / "a.npz"))
    with pytest.raises(UserError, match="no network around the rule at"):
        load_layers(AgentSettings(mode="learned", weights=tmp_path / "b.npz"))
    with pytest.raises(UserError, match="leave rule out"):
        load_layers(AgentSettings(mode="learned", weights="untrained", rule={"hold": 3}))
