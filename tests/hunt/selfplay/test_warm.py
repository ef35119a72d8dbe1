"""The warm start: what it hands over, and a stop in the middle of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from marlab.hunt.others.models import GoalModels, ModelSpec, save_goal_models
from marlab.hunt.planner.replay import Experience
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.hunt.selfplay.warm import WarmStart
from marlab.lab.runs.testing import assert_resume_equal
from tests.hunt.hop_cases import offline, small_training


def test_a_warm_start_goes_on_in_the_middle_to_the_bit(tmp_path: Path) -> None:
    config = small_training(load_data=offline(tmp_path / "data"), seeds="0,2")

    def make() -> WarmStart:
        warm = SelfPlayTrainer(config).warm
        assert warm is not None
        return warm

    assert_resume_equal(make, 2, 1, tmp_path)


def test_all_seats_begin_with_what_it_taught(tmp_path: Path) -> None:
    trainer = SelfPlayTrainer(small_training(load_data=offline(tmp_path / "data")))
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


def test_prior_and_value_go_on_learning_from_offline_steps(tmp_path: Path) -> None:
    """A share of every batch; what the prior learns of players who caught nothing was judged once, at the start."""
    data = offline(tmp_path / "data")
    config = small_training(load_data=data, seeds="0,2")
    trainer = SelfPlayTrainer(config)
    lessons, rows = trainer.lessons, trainer.offline
    assert lessons is not None and rows is not None
    lost = rows.value <= 0
    assert torch.equal(lessons.policy[~lost], rows.policy[~lost]) and bool(lost.any())
    assert float(lessons.policy[lost].abs().sum()) == 0.0, "models that know nothing yet teach nothing"
    shares, step = [], trainer.learner.player_step

    def watched(steps: Experience, lr: float, entropy: float) -> dict[str, torch.Tensor]:
        shares.append((steps.update < 0).float().mean(1).tolist())
        return step(steps, lr, entropy)

    trainer.learner.player_step = watched  # type: ignore[method-assign]
    for _ in range(6):
        trainer.iterate()
    size = config.learn.batch_size
    assert shares and all(share == [round(0.25 * size) / size] * 2 for share in shares)
    assert SelfPlayTrainer(replace(config, r2=True)).lessons is None, "ranks and rewards are not the same currency"
    without = replace(config, learn=replace(config.learn, lessons=0.0))
    assert SelfPlayTrainer(without).lessons is None


def test_without_hindsight_losers_teach_the_prior_nothing(tmp_path: Path) -> None:
    config = small_training(load_data=offline(tmp_path / "data"), load_moa=tmp_path / "models.pt")
    spec = ModelSpec(config.game, "outcome", 16, config.hidden, config.paths)
    save_goal_models(tmp_path / "models.pt", GoalModels(spec, torch.Generator().manual_seed(0)), None, 1)
    for hindsight in (True, False):
        trainer = SelfPlayTrainer(replace(config, learn=replace(config.learn, hindsight=hindsight)))
        assert trainer.lessons is not None and trainer.offline is not None
        taught = trainer.lessons.policy[trainer.offline.value <= 0].sum(-1)
        assert len(taught) and torch.allclose(taught, torch.full_like(taught, float(hindsight)), atol=1e-5)
