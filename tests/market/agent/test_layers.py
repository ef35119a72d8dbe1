"""Weights that are missing, or learnt with other options, are refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.market.networks.executor import TemporalDecisionTransformer
from marlab.market.networks.weights import save_network
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options

pytest.importorskip("scml")

from marlab.market.agent.layers import load_layers
from marlab.market.agent.settings import AgentSettings
from tests.market import agent_variants


def test_missing_weights_are_named(tmp_path: Path) -> None:
    untrained = {k: v for k, v in agent_variants.NETWORKS.items() if k != "l3_model_path"}
    with pytest.raises(UserError, match="no L3 model"):
        load_layers(AgentSettings(**untrained, l3_model_path=tmp_path / "nothing.pt"))
    with pytest.raises(UserError, match="no network for l4"):
        load_layers(AgentSettings(mode="heuristic", l4="neural"))


def test_weights_that_learnt_with_other_options_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "l3_bc.pt"
    network = TemporalDecisionTransformer(d_model=16, n_layers=1)
    save_network(path, network)
    told = {"l1": to_dict(L1Options()), "features": to_dict(FeatureOptions())}
    with pytest.raises(UserError, match=r"l3_bc\.pt do not say with which L1 rules and features they learnt"):
        load_layers(AgentSettings(**{**agent_variants.NETWORKS, "l3_model_path": path}))
    save_network(path, network, data={**told, "features": to_dict(FeatureOptions(offers="same_day_full"))})
    with pytest.raises(UserError, match="which nobody knows in play"):
        load_layers(AgentSettings(**{**agent_variants.NETWORKS, "l3_model_path": str(path)}))
    save_network(path, network, data=told)
    untrained = {k: v for k, v in agent_variants.NETWORKS.items() if k != "l3_model_path"}
    with pytest.raises(UserError, match=r"learnt with l1\.rules = 'guide'"):
        load_layers(AgentSettings(**untrained, l3_model_path=tmp_path, l1="economic"))
    layers = load_layers(AgentSettings(**untrained, l3_model_path=tmp_path))
    assert layers.l1 == L1Options()
    assert load_layers(AgentSettings(**untrained, l3_model_path=tmp_path)) is layers  # once per process
