"""Training of planning agents: labels, ranks, replay, who learns from what, alarms and rollbacks, resumption, files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.lab.runs.testing import assert_resume_equal
from tests.hunt.hop_cases import offline, small_training

# --- the trainer -----------------------------------------------------------------------------------------------------


def test_resume(tmp_path: Path) -> None:
    data = offline(tmp_path / "data")
    config = small_training(seeds="0,2", load_data=data)
    assert_resume_equal(lambda: HopTrainer(config), 3, 2, tmp_path, ignore=("time/", "time/steps_per_second"))


@pytest.mark.parametrize("variant", ["direct-om", "mcts-random", "mcts-self", "wo-inter"])
def test_variants_train(variant: str) -> None:
    trainer = HopTrainer(small_training(variant=variant, independent=variant == "wo-inter"))
    rows = [trainer.iterate() for _ in range(4)]
    assert all(math.isfinite(v) for v in rows[-1].values())
    assert rows[-1]["plan/improved_share"] == 1.0  # beta Q on top of the prior cannot do worse than the prior
    parts = sum(rows[-1][f"time/{part}"] for part in ("select", "expand", "backup", "final"))
    assert 0 < parts < rows[-1]["time/rollout"]


def test_one_learner_among_rules_and_ranks() -> None:
    trainer = HopTrainer(small_training(agent_roles="HOP,NS", r2=True, num_envs=12))
    rows = [trainer.iterate() for _ in range(6)]
    pair = "moa/1->2"
    assert math.isfinite(rows[-1][f"{pair}/excess"]) and math.isfinite(rows[-1][f"{pair}/floor"])
    labels = trainer.replay.store.value[0, : int(trainer.replay.sizes[0])]
    assert set(labels.sign().tolist()) <= {-1.0, 1.0} and float(labels.abs().max()) == 1.0
    rings = trainer.learner._rings(trainer.replay)
    assert set(rings.flatten().tolist()) == {0}  # the rule-based seat's steps do not teach the learner
