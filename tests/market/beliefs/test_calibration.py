"""How good beliefs are, on evidence that is made up."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from marlab.market.beliefs.calibration import (
    TEMPERS,
    Evidence,
    day_evidence,
    foresight,
    log_loss,
    mornings,
    quality,
    tune,
)
from marlab.market.rules.beliefs import BeliefOptions
from tests.market.beliefs_cases import named_worlds, random_observer, telling_observer


def made_up(days: int = 3, size: float = 2.0) -> Evidence:
    """Two partners of type 0, one of type 1, one of none; every day speaks for what they are by a factor e^size."""
    types = torch.tensor([0, 0, 1, -1])
    evidence = torch.zeros((4, days, 3))
    for row, kind in enumerate([0, 0, 1, 2]):
        evidence[row, :, kind] = size
    return Evidence(evidence, torch.ones((4, days)), types, ["a", "a", "b", "odd"], torch.zeros(4, dtype=torch.long))


def test_mornings_follow_from_days() -> None:
    observer = telling_observer((0.8, 0.2, 0.5))
    found = mornings(made_up(), observer, BeliefOptions(1.0, 1.0, 0.0, 0.0))
    assert found.shape == (4, 4, 3) and found[0, 0].tolist() == pytest.approx([1 / 3] * 3)
    assert float(found[0, 2, 0]) == pytest.approx(math.exp(4) / (math.exp(4) + 2))
    expected = -sum(math.log(math.exp(2 * d) / (math.exp(2 * d) + 2)) for d in (1, 2, 3)) / 3
    assert log_loss(found, made_up()) == pytest.approx(expected, rel=1e-4)


def test_evidence_that_never_lies_counts_in_full_and_lies_count_little() -> None:
    observer = telling_observer((0.8, 0.2, 0.5))
    assert tune(made_up(), observer).options.temper == max(TEMPERS)
    lying = made_up()
    lying.days[1, :, 0], lying.days[1, :, 1] = 0.0, 2.5
    assert tune(lying, observer).options.temper < max(TEMPERS)


def test_quality_tells_types_and_strangers_apart() -> None:
    observer = telling_observer((0.8, 0.2, 0.5))._replace(types=("a", "b"))
    found = quality(made_up(), observer)
    assert set(found.by_type) == {"a", "b"} and set(found.strangers) == {"odd"}
    assert found.by_day[1][1] == 1.0 and found.by_day[2][0] > found.by_day[1][0] > 1 / 3
    assert found.strangers["odd"][-1] > 0.8 and found.mistaken["a"]["a"] > 0.8
    assert found.reliability.count.sum() == 3 * 3


def test_real_worlds_give_evidence_for_every_pair() -> None:
    worlds = named_worlds()[:2]
    found = day_evidence(worlds, random_observer(2)._replace(types=("A", "B")))
    sizes = [world.config.sizes[0] for world in worlds]
    assert len(found.type) == 2 * sum(int(a * b) for size in sizes for a, b in itertools.pairwise(size))
    assert found.days.shape[1:] == (max(int(world.config.n_steps[0]) for world in worlds), 3)
    assert set(found.agent) == {"A", "B", "C"} and bool((found.type[[a == "C" for a in found.agent]] == -1).all())
    assert bool((found.days != 0).any(-1).any(1).float().mean() > 0.5)


def test_answers_are_foreseen_by_shares_that_are_known() -> None:
    told = foresight(named_worlds()[:1], telling_observer((0.5, 0.5, 0.5))._replace(types=("A", "B")))
    assert len({round(value, 5) for value in told.values()}) == 1  # nobody differs, so a belief adds nothing
    other = foresight(named_worlds()[:1], random_observer(2)._replace(types=("A", "B")))
    assert len({round(value, 5) for value in other.values()}) == 4 and min(other.values()) > 0
