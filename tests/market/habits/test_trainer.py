"""The trainer: steps, and going on as if nothing had happened."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.habits import evolve
from marlab.market.habits.ground import CENTRE, THE_RULE, Sold
from marlab.market.habits.trainer import HabitsTrainer, gains
from marlab.market.rules.habits import WORDS
from tests.market.habits_cases import tiny

CPU = torch.device("cpu")


def test_gains_are_taken_market_by_market() -> None:
    plays = np.array([THE_RULE, CENTRE, THE_RULE, CENTRE])
    score, market = np.array([1.0, 1.2, 0.5, 0.4]), np.array([0, 0, 4, 4])
    sold = Sold(score, np.zeros((4, len(evolve.USUAL))), plays, np.zeros(4, np.int64), market)
    assert gains(sold, 0) == pytest.approx([0.2, -0.1])


def test_a_training_that_was_cut_goes_on_to_the_same_habits() -> None:
    whole, cut = (HabitsTrainer(tiny(), CPU) for _ in range(2))
    told = whole.iterate()
    assert np.isfinite(told["habits/gain"]) and whole.step == 1
    whole.iterate()
    cut.iterate()
    after = HabitsTrainer(tiny(), CPU)
    after.load_state_dict(cut.state_dict())
    after.iterate()
    assert after.habits == whole.habits and after.step == 2
    assert all(np.array_equal(a.products, b.products) for a, b in zip(after.known, whole.known))


def test_the_last_word_is_about_other_worlds() -> None:
    trainer = HabitsTrainer(tiny(), CPU)
    told = trainer.last_word()
    assert set(told) == {"learner minus rule", *(f"learner minus rule, {words}" for words in WORDS.values())}
    learnt = {trainer.play(number).score.tobytes() for number in range(2)}
    assert trainer.play(10_000, drawn=False).score.tobytes() not in learnt
