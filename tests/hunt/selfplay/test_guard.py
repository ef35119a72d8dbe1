"""Alarms, and the way back to the best weights."""

from __future__ import annotations

import torch

from marlab.hunt.selfplay.config import GuardConfig
from marlab.hunt.selfplay.guard import Guard
from marlab.hunt.selfplay.learn import BestWeights, HopLearner
from tests.hunt.helpers import seeded
from tests.hunt.hop_cases import LEARN, small_mind


def test_a_seed_that_falls_goes_back_alone() -> None:
    mind = small_mind(seeds=(0, 1))
    learner = HopLearner(mind, LEARN, seeded(0))
    guard = Guard(GuardConfig(smoothing=0.0, drop=0.1, wait=2), 2, BestWeights(learner))
    good = {k: w.clone() for k, w in mind.state_dict().items()}
    assert guard.follow([2.0, 2.0]) == []
    with torch.no_grad():
        for weights in mind.parameters():
            weights += 1.0
    assert guard.follow([1.5, 2.1]) == [0]
    assert guard.follow([None, 2.1]) == [] and guard.rollbacks == [1, 0]
    for name, weights in mind.state_dict().items():
        if name == "others.goals":
            continue
        first, second = weights.unflatten(0, (2, -1))
        was, _ = good[name].unflatten(0, (2, -1))
        assert torch.equal(first, was) and not torch.equal(second, good[name].unflatten(0, (2, -1))[1])


def test_alarms() -> None:
    guard = Guard(GuardConfig(), 1, BestWeights(HopLearner(small_mind(), LEARN, seeded(0))))
    assert not any(guard.alarms(0.0, 1.5, 0.0, 9.0).values())  # too early
    assert guard.alarms(0.5, 1.5, 5.0, 0.1) == {"entropy": True, "q_spread": False, "moa_excess": False}
    assert guard.alarms(0.5, 0.5, 0.2, 0.9) == {"entropy": False, "q_spread": True, "moa_excess": True}
    assert not any(guard.alarms(0.5, 0.5, 5.0, None).values())
