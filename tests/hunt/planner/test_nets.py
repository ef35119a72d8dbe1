"""Networks of several seeds and seats side by side."""

from __future__ import annotations

import torch

from marlab.hunt.planner.nets import OtherNets, copy_generators
from tests.hunt.helpers import seeded
from tests.hunt.hop_cases import TINY


def test_goals_told_once_are_goals_told_every_time() -> None:
    """What a tree precomputes gives the same predictions as trying all goals, for every observer's own network."""
    nets = OtherNets(TINY, torch.eye(2), 8, copy_generators((0, 1), 2, "t"))
    with torch.no_grad():
        nets.actor.weight.normal_(generator=seeded(0))
        nets.place.normal_(generator=seeded(1))
    rows = torch.randint(0, 2, (4, 5, 1, nets.sight.rows.weight.shape[1]), generator=seeded(2)).to(torch.uint8)
    time, goal = torch.rand(4, 5, generator=seeded(3)), torch.randint(0, 2, (4, 5, 1), generator=seeded(4))
    every = nets(rows, time)  # [P, N, S', K, A]
    given = nets.given(rows, time, nets.goal_input(goal))
    expected = every.gather(3, goal[..., None, None].expand(-1, -1, -1, 1, every.shape[-1])).squeeze(3)
    torch.testing.assert_close(given, expected)
    single = OtherNets(TINY, torch.eye(2), 8, copy_generators((1,), 2, "t"))
    single.load_state_dict({k: w if k == "goals" else w[2:] for k, w in nets.state_dict().items()})
    torch.testing.assert_close(single(rows[2:], time[2:]), every[2:])
