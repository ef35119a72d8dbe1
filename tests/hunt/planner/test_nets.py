"""Networks of several seeds and seats side by side."""

from __future__ import annotations

import torch

from marlab.hunt.others.copies import copy_generators
from marlab.hunt.planner.nets import PlayerNets
from tests.hunt.helpers import seeded
from tests.hunt.hop_cases import TINY


def test_a_seed_evaluates_as_it_does_beside_others() -> None:
    nets = PlayerNets(TINY, 2, 8, copy_generators((0, 1), 2, "t"))
    rows = torch.randint(0, 2, (4, 5, nets.sight.rows.weight.shape[1]), generator=seeded(2)).to(torch.uint8)
    time, goals = torch.rand(4, 5, generator=seeded(3)), torch.rand(4, 5, 1, 2, generator=seeded(4))
    logits, value = nets(rows, time, nets.goal_input(goals))
    single = PlayerNets(TINY, 2, 8, copy_generators((1,), 2, "t"))
    for found, expected in zip(single(rows[2:], time[2:], single.goal_input(goals[2:])), (logits, value)):
        torch.testing.assert_close(found, expected[2:])
    assert not torch.allclose(logits, nets(rows, time, nets.goal_input(1 - goals))[0])
