"""Planted faults: each must fail the module that has it, and no other.

Real but tiny trainings on msh_4x4. They cannot reach what full ones must, so some gates lie lower here: between what
the clean training reaches and what the faults leave. The gates that catch the faults themselves are the real ones.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from marlab.hunt.data.dataset import Dataset, SplitName
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.pretraining import run as goals_module
from marlab.hunt.pretraining.run import pretrain_goals
from marlab.hunt.pretraining.trainer import Splits
from marlab.hunt.world_model import pretrain as pretrain_world
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.data import Transitions
from marlab.hunt.world_model.pretrain import pretrain_world as train_world
from marlab.lab.runs.run import RunOptions
from tests.hunt.diagnose_cases import judged, missed, shuffle_labels, spoilt, statuses

pytestmark = pytest.mark.long  # trainings


def goals(rule_data: Path, out: Path, **changes: object) -> Path:
    config = PretrainGoalsConfig(
        data=rule_data,
        goal_source="type",
        epochs=7,
        batch_size=64,
        learning_rate=1.5e-3,
        belief_games=0,
        overfit_check=False,
    )
    return pretrain_goals(replace(config, **changes), RunOptions(output_dir=out), quiet=True).path  # type: ignore[arg-type]


def world(rule_data: Path, out: Path) -> Path:
    config = PretrainWorldConfig(data=rule_data, rows=0, epochs=6, batch_size=64, learning_rate=3e-3)
    return train_world(config, RunOptions(output_dir=out), quiet=True).path


@pytest.fixture(scope="module")
def clean_goals(rule_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return goals(rule_data, tmp_path_factory.mktemp("faults") / "goals")


@pytest.fixture(scope="module")
def clean_world(rule_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(rule_data, tmp_path_factory.mktemp("faults") / "world")


def test_without_a_fault_everything_passes(clean_goals: Path, clean_world: Path) -> None:
    report = judged(clean_goals, clean_world)
    assert statuses(report) == dict.fromkeys(("data", "MOA", "belief", "world model"), "pass"), missed(report)


def test_double_softmax_fails_the_model_of_others(rule_data: Path, clean_world: Path, tmp_path: Path) -> None:
    report = judged(goals(rule_data, tmp_path / "run", legacy_double_softmax=True), clean_world)
    assert statuses(report) | {"belief": "?"} == {"data": "pass", "MOA": "fail", "belief": "?", "world model": "pass"}
    assert report.status("belief") != "fail"
    by_heart = next(check for check in report.checks if check.name == "one batch by heart")
    assert by_heart.value is not None and by_heart.value > 1.1  # probabilities as logits cannot go below 1.165 nats


def test_rows_after_exit_fail_the_data(rule_data: Path, clean_world: Path, tmp_path: Path) -> None:
    report = judged(goals(rule_data, tmp_path / "run", legacy_post_exit_rows=True, epochs=3), clean_world)
    assert {module for module, status in statuses(report).items() if status == "fail"} == {"data"}
    assert "data/rows after exit" in missed(report)


def test_labels_shuffled_in_training_fail_the_model_of_others(
    rule_data: Path, clean_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_splits = goals_module.make_splits

    def shuffled(config: PretrainGoalsConfig, dataset: Dataset) -> Splits:
        splits = true_splits(config, dataset)
        order = torch.randperm(splits.train.rows, generator=torch.Generator().manual_seed(0))
        train = splits.train._replace(action=splits.train.action[order], mask=splits.train.mask[order])
        return splits._replace(train=train)

    monkeypatch.setattr(goals_module, "make_splits", shuffled)
    report = judged(goals(rule_data, tmp_path / "run", epochs=3), clean_world)
    assert {module for module, status in statuses(report).items() if status == "fail"} == {"MOA"}
    assert "MOA/excess without goal" in missed(report)


def test_channels_swapped_in_training_fail_the_world_model(
    rule_data: Path, clean_goals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Players 2 and 3 change places in all planes, but not in the joint action: the original's fault."""
    true_transitions = pretrain_world.transitions

    def swapped(dataset: Dataset, split: SplitName, rows: int = 0) -> Transitions:
        found = true_transitions(dataset, split, rows)
        obs, next_obs = (planes[..., [0, 2, 1, 3, 4, 5, 6]] for planes in (found.obs, found.next_obs))
        return found._replace(obs=obs, next_obs=next_obs, outcome=found.outcome[:, [0, 2, 1, 3]])

    monkeypatch.setattr(pretrain_world, "transitions", swapped)
    report = judged(world(rule_data, tmp_path / "run"), clean_goals)
    assert {module for module, status in statuses(report).items() if status == "fail"} == {"world model"}
    assert "world model/position accuracy, worst player" in missed(report)


def test_models_judged_on_spoilt_data_are_not_blamed(
    rule_data: Path, clean_goals: Path, clean_world: Path, tmp_path: Path
) -> None:
    report = judged(clean_goals, clean_world, data=spoilt(rule_data, tmp_path / "data", shuffle_labels))
    assert statuses(report)["data"] == "fail"
    assert statuses(report)["MOA"] == "blocked"
    assert {module for module, status in statuses(report).items() if status == "fail"} == {"data"}
