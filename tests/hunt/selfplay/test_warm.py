"""The warm start: what it hands over, and a stop in the middle of it."""

from __future__ import annotations

from pathlib import Path

import torch

from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.hunt.selfplay.warm import WarmStart
from marlab.lab.runs.testing import assert_resume_equal
from tests.hunt.hop_cases import offline, small_training


def test_a_warm_start_goes_on_in_the_middle_to_the_bit(tmp_path: Path) -> None:
    config = small_training(load_data=offline(tmp_path / "data"), seeds="0,2")

    def make() -> WarmStart:
        warm = HopTrainer(config).warm
        assert warm is not None
        return warm

    assert_resume_equal(make, 2, 1, tmp_path)


def test_all_seats_begin_with_what_it_taught(tmp_path: Path) -> None:
    trainer = HopTrainer(small_training(load_data=offline(tmp_path / "data"), independent=True))
    slow = trainer.learner.slow
    before = [weights.clone() for weights in slow.parameters()]
    warm = trainer.warm
    assert warm is not None
    trainer.warm_up()
    assert trainer.warm is None and warm.step == warm.total == 3
    taught = dict(warm.teacher.slow.named_parameters())
    for (name, weights), old in zip(slow.named_parameters(), before):
        if name.startswith("players."):
            assert torch.equal(weights, taught[name].repeat_interleave(len(weights) // len(taught[name]), 0))
        assert torch.equal(weights, old) == name.startswith("others."), "models of others come from pretraining"
    assert torch.equal(trainer.guard.best_weights.kept[0], next(trainer.learner.fast.parameters()))
