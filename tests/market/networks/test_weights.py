"""Networks come back from their files as they were."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3PolicyModel, TemporalDecisionTransformer
from marlab.market.networks.weights import L3_KIND, L4_KIND, load_network, save_network
from tests.market.network_cases import decisions, disturbed, rounds


@pytest.mark.parametrize(
    "model", [TemporalDecisionTransformer(d_model=32, n_layers=1), L3PolicyModel(d_model=32, n_layers=1)]
)
def test_saved_executors_come_back_as_they_were(tmp_path, model: TemporalDecisionTransformer) -> None:
    disturbed(model)
    model.data = {"l1": {"rules": "guide"}}
    save_network(tmp_path / "l3.pt", model)
    loaded = load_network(tmp_path / "l3.pt", L3_KIND)
    inputs = decisions(16)
    with torch.inference_mode():
        assert all(torch.equal(a, b) for a, b in zip(model(inputs), loaded(inputs)))
    assert type(loaded) is type(model) and loaded.data == model.data


def test_saved_coordinators_come_back_as_they_were(tmp_path) -> None:
    model = disturbed(GlobalCoordinator())
    save_network(tmp_path / "l4.pt", model)
    with torch.inference_mode():
        assert torch.equal(load_network(tmp_path / "l4.pt", L4_KIND)(*rounds(4, 5))[0], model(*rounds(4, 5))[0])
    assert np.isfinite(model(*rounds(4, 5))[0].detach().numpy()).all()
