"""Reward over training, read from the records of runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.hunt.diagnose.curves import level_rows, open_training
from marlab.hunt.players.published import REWARD_CURVES
from tests.hunt.training_records import rising, write_training


def test_levels_are_means_over_seeds(tmp_path: Path) -> None:
    training = open_training(write_training(tmp_path / "plus", "hopplus"), "plus")
    assert training.reward.shape == (2, 40) and np.isnan(training.reward[:, :2]).all()
    best, end = training.level()
    mean = [rising(t) + 0.01 for t in range(2, 40)]
    assert end == pytest.approx(np.mean(mean[-4:])) and best == end  # it rises: the end is the highest mean
    assert training.hours[-1] == pytest.approx(0.4)
    assert level_rows([training])[0][4] == pytest.approx(mean[0])


def test_a_training_that_was_stopped_is_not_drawn_as_a_whole_one(tmp_path: Path) -> None:
    whole, part = (open_training(write_training(tmp_path / str(n), "hop", planned=n), "") for n in (40, 80))
    assert whole.share[-1] == 1.0 and part.share[-1] == pytest.approx(0.5)


def test_published_curves_are_whole() -> None:
    for curve in REWARD_CURVES.values():
        assert list(curve.points) == sorted(curve.points) and curve.points[0][0] == 0
        assert curve.hours > 0 and all(0.5 < value < 3 for _, value in curve.points)
