"""Value labels, ranked rewards, and the replay of the newest steps."""

from __future__ import annotations

import torch

from marlab.hunt.planner.replay import Experience, RankedRewards, Replay, value_labels
from tests.hunt.helpers import seeded


def test_value_labels() -> None:
    """Check 29: one reward of 5 at the last of four steps, discounted by 0.95."""
    found = value_labels(torch.tensor([0.0, 0.0, 0.0, 5.0]), 0.95)
    torch.testing.assert_close(found, torch.tensor([4.2869, 4.5125, 4.75, 5.0]), atol=1e-4, rtol=0)
    several = value_labels(torch.tensor([[1.0, 0.0, 2.0]]), 0.5)
    torch.testing.assert_close(several, torch.tensor([[1.5, 1.0, 2.0]]))


def test_ranked_rewards() -> None:
    """Check 30: the stream 1, 1, 1, 5 has the 75th percentile 2 (interpolated); at a tie a coin, or +1 at the top."""
    ranked = RankedRewards(torch.tensor([[1.0, 1.0, 1.0, 5.0]]))
    assert ranked.level.tolist() == [2.0]
    seed = torch.zeros(3, dtype=torch.int64)
    assert ranked.rank(torch.tensor([1.0, 2.5, 5.0]), seed, seeded(0)).tolist() == [-1.0, 1.0, 1.0]
    ties = RankedRewards(torch.tensor([[1.0, 1.0, 1.0, 1.0, 5.0]]))  # the percentile is 1 and is not the highest
    assert ties.level.tolist() == [1.0]
    drawn = ties.rank(torch.ones(4000), torch.zeros(4000, dtype=torch.int64), seeded(1))
    assert set(drawn.tolist()) == {-1.0, 1.0} and abs(float(drawn.mean())) < 0.06
    top = RankedRewards(torch.ones(1, 8))
    assert top.rank(torch.ones(50), torch.zeros(50, dtype=torch.int64), seeded(2)).tolist() == [1.0] * 50
    ranked.add(torch.full((1000,), 3.0), torch.zeros(1000, dtype=torch.int64))
    assert len(ranked.buffers[0]) == 1000 and ranked.level.tolist() == [3.0]


def _steps(values: list[float]) -> Experience:
    x = torch.tensor(values)
    n = len(values)
    return Experience(
        torch.zeros(n, 3, dtype=torch.uint8), x, torch.zeros(n, dtype=torch.int64), torch.zeros(n, 2), x,
        torch.zeros(n, 1, 2), torch.zeros(n, 2, 1, 2), torch.zeros(n, 2, 0), torch.arange(n),
    )  # fmt: skip


def test_replay_keeps_the_newest_of_each_player() -> None:
    replay = Replay(2, 3, Experience(*(x[0] for x in _steps([0.0]))))
    replay.add(torch.tensor([0, 1, 0, 0]), _steps([1.0, 10.0, 2.0, 3.0]))
    replay.add(torch.tensor([0, 1]), _steps([4.0, 11.0]))
    assert replay.sizes.tolist() == [3, 2]
    drawn = replay.draw(torch.zeros(200, dtype=torch.int64), seeded(0))
    assert set(drawn.value.tolist()) == {2.0, 3.0, 4.0}
    newest = replay.draw(torch.zeros(200, dtype=torch.int64), seeded(0), newest=2)
    assert set(newest.value.tolist()) == {3.0, 4.0}
    assert set(replay.draw(torch.ones(200, dtype=torch.int64), seeded(0)).value.tolist()) == {10.0, 11.0}
    replay.add(torch.zeros(5, dtype=torch.int64), _steps([5.0, 6.0, 7.0, 8.0, 9.0]))  # more than it holds
    assert set(replay.draw(torch.zeros(200, dtype=torch.int64), seeded(1)).value.tolist()) == {7.0, 8.0, 9.0}
