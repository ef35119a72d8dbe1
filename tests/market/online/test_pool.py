"""Opponents: who there is, who is drawn more often, and what is kept."""

from __future__ import annotations

import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.online.net import AroundRule
from marlab.market.online.pool import Pool
from marlab.market.rules import around


def test_whoever_is_ahead_is_drawn_more_often() -> None:
    pool = Pool(("rule", "SyncRandomStdAgent"), None, 0)
    assert pool.names == ["RandomStdAgent", "learner", "rule", "SyncRandomStdAgent"]
    assert pool.chances().tolist() == pytest.approx([0, 0, 0.5, 0.5])
    for _ in range(60):
        pool.learn(torch.tensor([0.0, 0.0, 0.05, 0.0]), torch.tensor([False, True, True, True]))
    assert pool.chances()[2] == pytest.approx(2 / 3, abs=1e-3)


def test_past_selves_are_drawn_once_there_are_some_and_survive_saving() -> None:
    pool = Pool(("rule",), None, 1)
    net = AroundRule((4,), around.INPUTS, 2.0, torch.Generator().manual_seed(0))
    assert pool.chances()[-1] == 0 and pool.lasting == [2]
    pool.remember(net)
    assert pool.chances()[-1] > 0
    other = Pool(("rule",), None, 1)
    other.load_state_dict(pool.state_dict())
    assert torch.equal(other.chances(), pool.chances())
    assert all(torch.equal(other.past[0][name], value) for name, value in net.state_dict().items())


def test_strangers_are_refused() -> None:
    with pytest.raises(UserError, match="no opponent Nobody"):
        Pool(("Nobody",), None, 0)
