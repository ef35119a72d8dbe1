"""The best that any predictor can do."""

from __future__ import annotations

import math

import pytest
import torch

from marlab.hunt.exact.ceilings import ceilings
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.lab.runs.rng import Rngs


def test_scores_of_predictors_by_hand() -> None:
    from marlab.hunt.exact.ceilings import _Tally

    tally = _Tally()
    tally.new_batch()
    tied = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]])
    tally.add(tied, torch.tensor([0, 1, 0]))
    score = tally.score()
    assert score.top1 == pytest.approx(1 / 3) and score.top3 == pytest.approx(2 / 3)  # the lowest number wins a tie
    assert score.top1_split == pytest.approx((0.5 + 0.5 + 0.0) / 3)
    assert score.cross_entropy == pytest.approx((2 * math.log(2) - math.log(0.1)) / 3)
    assert score.rows == 3


def test_nobody_beats_the_known_type() -> None:
    found = ceilings(make_game(game_config("msh_4x4")), 600, Rngs(0))
    assert found.known.cross_entropy < found.bayes.cross_entropy < found.mixture.cross_entropy
    assert found.known.top1 > found.bayes.top1 > found.mixture.top1
    assert found.belief[0] == 0.5 and found.belief[4] > 0.97
    assert list(found.belief[:5]) == sorted(found.belief[:5])
