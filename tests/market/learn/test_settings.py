"""Stages of learning rates, and what settings refuse."""

from __future__ import annotations

import pytest

from marlab.lab.errors import UserError
from marlab.market.learn.settings import Stage, TrainSettings


def test_stages_give_each_epoch_its_rate() -> None:
    settings = TrainSettings(l2_stages="40:3e-4,10:1e-4,10:5e-5")
    assert settings.stages("l2")[1] == Stage(10, 1e-4) and settings.epochs("l2") == 60
    assert [settings.lr_at("l2", e) for e in (0, 39, 40, 49, 50, 59)] == [3e-4, 3e-4, 1e-4, 1e-4, 5e-5, 5e-5]
    for bad in ("40", "a:b", "3:-1", "-2:1e-3"):
        with pytest.raises(UserError):
            TrainSettings(l2_stages=bad)
