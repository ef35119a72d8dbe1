"""Returns and advantages of days."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.learn.advantage import Expectation, returns
from marlab.market.samples.dataset import Samples
from tests.market.learn_cases import labelled_samples


@pytest.fixture(scope="module")
def samples() -> Samples:
    return labelled_samples()


def test_returns_by_hand() -> None:
    found = returns(np.array([1.0, 2.0, 4.0, 8.0, np.nan, 1.0]), np.array([0, 0, 0, 1, 2, 2]), 0.5)
    assert found[:4].tolist() == [3.0, 4.0, 4.0, 8.0] and np.isnan(found[4]) and found[5] == 1.0
    cut = returns(np.array([1.0, 2.0, np.nan, 8.0, 4.0]), np.zeros(5, int), 0.5)  # days before a gap still count
    assert cut[:2].tolist() == [2.0, 2.0] and np.isnan(cut[2]) and cut[3:].tolist() == [10.0, 4.0]


def test_advantages_are_what_the_morning_did_not_tell(samples: Samples) -> None:
    advantage = Expectation(samples.macro, 0.98, 0).advantages(samples.macro)
    assert advantage.shape == (samples.rows("macro"),) and np.isfinite(advantage).all()
    np.testing.assert_array_equal(advantage, Expectation(samples.macro, 0.98, 0).advantages(samples.macro))
    unknown = {**samples.macro, "reward": np.full(samples.rows("macro"), np.nan, np.float32)}
    with pytest.raises(UserError, match="reward"):
        Expectation(unknown, 0.98, 0).advantages(unknown)
