"""Earlier offers, best first: sums of the better ones are those of adding up one by one."""

from __future__ import annotations

import numpy as np
import torch

from marlab.market.rules import records
from marlab.market.rules.l1 import Action
from marlab.market.rules.prospects import prospects

LOW, HIGH, COST = 18.0, 22.0, 19.0
"""Some offers bring less than they cost."""


def heard(rng: np.random.Generator, offers: int) -> records.Records:
    """Two partners, each with some of the given number of offers."""
    told = Action(
        rng.integers(1, 11, (1, 2, offers)) * 1.0, rng.random((1, 2, offers)), rng.integers(0, 12, (1, 2, offers))
    )
    told.quantity[rng.random((1, 2, offers)) < 0.2] = np.nan
    yes, none = np.ones((1, 2), bool), np.zeros((1, 2))
    return records.after_talks(records.empty((1, 2)), yes, told, none, none, ~yes)


def test_better_ones_are_those_of_adding_up_one_by_one() -> None:
    rng = np.random.default_rng(0)
    room = rng.integers(0, 11, (1, 11)) * 1.0
    for offers in (1, 7, records.HEARD):
        known = heard(rng, offers)
        one = np.ones((1, 1))
        found = prospects(known, one * LOW, one * HIGH, one * COST).fitting(room)
        for worth in (-8.0, 0.0, 5.0, 1000.0):
            better = found.better(np.full((1, 2), worth))
            for k in range(2):
                total = 0.0
                for i in range(int(known.heard_count[0, k])):
                    quantity, position, ahead = (
                        ring[0, k, i] for ring in (known.heard_quantity, known.heard_position, known.heard_ahead)
                    )
                    fits = ahead < 11 and quantity <= room[0, int(ahead)]
                    total += max(worth, quantity * (LOW + position * (HIGH - LOW) - COST) if fits else 0.0)
                np.testing.assert_allclose(better[0, k], total, rtol=1e-12)
            tensors = records.Records(*map(torch.from_numpy, known))
            other = prospects(tensors, *(torch.full((1, 1), v, dtype=torch.float64) for v in (LOW, HIGH, COST)))
            again = other.fitting(torch.from_numpy(room)).better(torch.full((1, 2), worth, dtype=torch.float64))
            np.testing.assert_allclose(again.numpy(), better, rtol=1e-12)
