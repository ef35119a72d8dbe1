"""Clone beside expert: shares of what was done, and a baseline that learns nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.clones.examples import ASK, LEAVE
from marlab.market.clones.measure import beside, marginals, predicted
from marlab.market.vector.clones import network
from tests.market.clones.test_fit import scripted


def test_shares_are_those_of_the_expert() -> None:
    data = scripted(400, 0)
    data.facts[:, -1] = np.arange(400) % 4  # four worlds
    weights = network.new_weights(1, 8, torch.Generator().manual_seed(0))
    found = beside(weights, data, marginals(data))
    op = data.column("op")
    assert found["decisions"] == 400
    assert found["shares"]["leave"]["expert"].number == pytest.approx((op == LEAVE).mean())
    assert found["terms"]["lot"]["expert"].number == pytest.approx(data.column("lot")[op == ASK].mean() + 1)
    assert [row["decisions"] for row in found["hazard"]] == np.bincount(data.column("round"), minlength=20).tolist()
    assert sum(found["distributions"]["lot"]["clone"]) == pytest.approx(1)
    for part, value in found["cross_entropy"].items():
        assert value.low <= value.number <= value.high, part
    # random weights know less than the shares do
    assert found["marginal"]["decision"].number < found["cross_entropy"]["decision"].number


def test_probabilities_are_probabilities() -> None:
    data = scripted(50, 0)
    found = predicted(network.new_weights(1, 8, torch.Generator().manual_seed(0)), data)
    assert np.allclose(found.day.sum(1), 1) and np.allclose(found.lot.sum(1), 1) and np.allclose(found.price.sum(1), 1)
    assert (found.accept[data.column("on_table") == 0] == 0).all()


def test_no_share_of_the_baseline_is_zero() -> None:
    found = marginals(scripted(50, 0))
    assert found.lot.min() > 0 and found.lot.sum() == pytest.approx(1) and 0 < found.leave < 1
