"""Settings of a planning agent, and what its variant decides."""

from __future__ import annotations

import pytest

from marlab.hunt.others.config import TRAINING_DISCOUNT
from marlab.hunt.planner.config import MindConfig, PlanConfig
from marlab.lab.errors import UserError


def test_the_variant_decides_what_beliefs_learn_from() -> None:
    assert MindConfig("wo-inter").beliefs.inter is False and MindConfig("wo-intra").beliefs.intra is False
    beliefs = MindConfig("hop").beliefs
    assert beliefs.inter and beliefs.intra and beliefs.discount == TRAINING_DISCOUNT


def test_wrong_settings() -> None:
    with pytest.raises(UserError, match="variant is 'hip'"):
        MindConfig("hip")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="hidden is 0"):
        MindConfig(hidden=0)
    with pytest.raises(UserError, match="gamma is 0"):
        PlanConfig(gamma=0.0)
    with pytest.raises(UserError, match="trees is 0"):
        PlanConfig(trees=0)
