"""Training of planning agents: labels, ranks, replay, who learns from what, alarms and rollbacks, resumption, files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from marlab.hunt.others.models import load_goal_models
from marlab.hunt.selfplay import trainer as trainer_module
from marlab.hunt.selfplay.config import GuardConfig
from marlab.hunt.selfplay.learn import BestWeights, PlannerLearner
from marlab.hunt.selfplay.trainer import RollbackMonitor, SelfPlayTrainer
from marlab.lab.runs.testing import assert_halfway_equal, assert_resume_equal
from tests.hunt.helpers import seeded
from tests.hunt.hop_cases import LEARN, offline, small_mind, small_models, small_training

# --- the trainer -----------------------------------------------------------------------------------------------------


def test_resume(tmp_path: Path) -> None:
    data, models = offline(tmp_path / "data"), small_models(tmp_path / "models")
    config = small_training(variant="hopplus-mcts", seeds="0,2", load_data=data, load_moa=models)
    assert_resume_equal(lambda: SelfPlayTrainer(config), 3, 2, tmp_path, ignore=("time/", "time/steps_per_second"))


def test_an_iteration_goes_on_in_its_middle(tmp_path: Path) -> None:
    config = small_training(load_data=offline(tmp_path / "data"))
    assert_halfway_equal(lambda: SelfPlayTrainer(config), 7, 3, tmp_path, ignore=("time/",))


def test_pretrained_models_play_and_go_on_learning(tmp_path: Path) -> None:
    """Planners begin with what pretraining made; then the predictor and the history encoder both learn from play."""
    folder = small_models(tmp_path)
    config = small_training(variant="hopplus-mcts", load_moa=folder, learn=LEARN)
    trainer = SelfPlayTrainer(config)
    made = load_goal_models(folder).models
    fast, slow = trainer.learner.fast.others, trainer.learner.slow.others
    assert fast is not None and slow is not None and fast.history is not None and made.history is not None
    for own, given in ((fast.moa, made.moa), (fast.history, made.history), (slow.history, made.history)):
        assert all(torch.equal(w, given.state_dict()[k].expand_as(w)) for k, w in own.state_dict().items())
    rows = [trainer.iterate() for _ in range(3)]
    assert all(math.isfinite(rows[-1][f"moa/{name}"]) for name in ("ce", "history_ce", "foretelling"))
    for own, given in ((slow.moa, made.moa), (slow.history, made.history)):
        assert not torch.equal(own.sight.rows.weight, given.sight.rows.weight.expand_as(own.sight.rows.weight))


@pytest.mark.parametrize("variant", ["direct-om", "mcts-random", "mcts-self", "wo-inter"])
def test_variants_train(variant: str) -> None:
    trainer = SelfPlayTrainer(small_training(variant=variant))
    rows = [trainer.iterate() for _ in range(4)]
    assert all(math.isfinite(v) for v in rows[-1].values())
    assert rows[-1]["plan/improved_share"] == 1.0  # beta Q on top of the prior cannot do worse than the prior
    parts = sum(rows[-1][f"time/{part}"] for part in ("select", "expand", "backup", "final"))
    assert 0 < parts < rows[-1]["time/rollout"]


def test_one_learner_among_rules_and_ranks() -> None:
    trainer = SelfPlayTrainer(small_training(agent_roles="HOP,NS", r2=True, num_envs=12))
    rows = [trainer.iterate() for _ in range(6)]
    pair = "moa/1->2"
    assert math.isfinite(rows[-1][f"{pair}/excess"]) and math.isfinite(rows[-1][f"{pair}/floor"])
    labels = trainer.replay.store.value[0, : int(trainer.replay.sizes[0])]
    assert set(labels.sign().tolist()) <= {-1.0, 1.0} and float(labels.abs().max()) == 1.0
    rings = trainer.learner._rings(trainer.replay, 64)
    assert set(rings.flatten().tolist()) == {0}  # the rule-based seat's steps do not teach the learner


def test_a_seed_that_falls_goes_back_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer_module, "SMOOTHING", 0.0)
    monkeypatch.setattr(trainer_module, "WAIT", 2)
    mind = small_mind(seeds=(0, 1))
    learner = PlannerLearner(mind, LEARN, seeded(0))
    guard = RollbackMonitor(GuardConfig(drop=0.1), 2, BestWeights(learner))
    good = {k: w.clone() for k, w in mind.state_dict().items()}
    assert guard.follow([2.0, 2.0]) == []
    with torch.no_grad():
        for weights in mind.parameters():
            weights += 1.0
    assert guard.follow([1.5, 2.1]) == [0]
    assert guard.follow([None, 2.1]) == [] and guard.rollbacks == [1, 0]
    for name, weights in mind.state_dict().items():
        if name == "others.goals":
            continue
        first, second = weights.unflatten(0, (2, -1))
        was, _ = good[name].unflatten(0, (2, -1))
        assert torch.equal(first, was) and not torch.equal(second, good[name].unflatten(0, (2, -1))[1])


def test_alarms() -> None:
    guard = RollbackMonitor(GuardConfig(), 1, BestWeights(PlannerLearner(small_mind(), LEARN, seeded(0))))
    assert not any(guard.alarms(0.0, 1.5, 0.0, 9.0).values())  # too early
    assert guard.alarms(0.5, 1.5, 5.0, 0.1) == {"entropy": True, "q_spread": False, "moa_excess": False}
    assert guard.alarms(0.5, 0.5, 0.2, 0.9) == {"entropy": False, "q_spread": True, "moa_excess": True}
    assert not any(guard.alarms(0.5, 0.5, 5.0, None).values())
