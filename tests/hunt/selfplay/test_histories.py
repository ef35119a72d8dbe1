"""The newest whole histories of every seed."""

from __future__ import annotations

import torch

from marlab.hunt.selfplay.histories import Histories, History
from tests.hunt.helpers import seeded


def some(values: list[int]) -> History:
    n = len(values)
    x = torch.tensor(values)
    return History(
        torch.zeros(n, 4, 3, dtype=torch.uint8), torch.zeros(n, 4, 2, dtype=torch.int64),
        torch.ones(n, 4, dtype=torch.bool), torch.zeros(n, 2), x,
    )  # fmt: skip


def test_every_seed_keeps_its_newest_and_draws_its_own() -> None:
    kept = Histories(2, 3, some([0]).select(0))
    kept.add(torch.tensor([1, 0, 0, 0, 0]), some([10, 1, 2, 3, 4]))
    drawn = kept.draw((50,), seeded(0))
    assert drawn.rows.shape == (2, 50, 4, 3)
    assert set(drawn.outcome[0].tolist()) == {2, 3, 4} and set(drawn.outcome[1].tolist()) == {10}
    again = Histories(2, 3, some([0]).select(0))
    again.load_state_dict(kept.state_dict())
    assert torch.equal(again.draw((9,), seeded(1)).outcome, kept.draw((9,), seeded(1)).outcome)
