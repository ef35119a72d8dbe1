"""Planted faults: each must fail the module that has it, and no other.

Real but tiny trainings on msh_4x4. They cannot reach what full ones must, so some gates lie lower here: between what
the clean training reaches and what the faults leave. The gates that catch the faults themselves are the real ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from marlab.hunt.data.collect import _sequence_table, collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Dataset, Part, Rows, SplitName, load_dataset, metadata, rows_table
from marlab.hunt.data.legacy import with_rows_after_exit
from marlab.hunt.diagnose.command import DiagnoseConfig
from marlab.hunt.diagnose.report import Report, diagnose
from marlab.hunt.others import pretrain as goals_module
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.others.pretrain import pretrain_goals
from marlab.hunt.others.trainer import Splits
from marlab.hunt.training.gates import Gates
from marlab.hunt.world_model import pretrain as pretrain_world
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.data import Transitions
from marlab.hunt.world_model.pretrain import pretrain_world as train_world
from marlab.lab.runs.run import RunOptions

TINY = replace(
    Gates(), top1_typed=0.60, top3_typed=0.88, ece=0.07, belief_learned=0.65,
    vanish=0.02, position=0.98, position_5=0.93, reward_mse=0.05,
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("faults") / "data"
    return collect(HuntCollectConfig(rows=6000, train_share=0.7), RunOptions(output_dir=out), quiet=True).path


def goals(data: Path, out: Path, **changes: object) -> Path:
    config = PretrainGoalsConfig(
        data=data,
        goal_source="type",
        epochs=7,
        batch_size=64,
        learning_rate=1.5e-3,
        belief_games=0,
        overfit_check=False,
    )
    return pretrain_goals(replace(config, **changes), RunOptions(output_dir=out), quiet=True).path  # type: ignore[arg-type]


def world(data: Path, out: Path) -> Path:
    config = PretrainWorldConfig(data=data, rows=0, width=32, epochs=6, batch_size=64, learning_rate=3e-3)
    return train_world(config, RunOptions(output_dir=out), quiet=True)


@pytest.fixture(scope="module")
def clean_goals(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return goals(data, tmp_path_factory.mktemp("faults") / "goals")


@pytest.fixture(scope="module")
def clean_world(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(data, tmp_path_factory.mktemp("faults") / "world")


def judged(*runs: Path, data: Path | None = None) -> Report:
    names = tuple(str(run) for run in runs)
    return diagnose(DiagnoseConfig(runs=names, data=data, figures=False, episodes=8, belief_games=6, gates=TINY))


def statuses(report: Report) -> dict[str, str]:
    return {verdict.module: verdict.status for verdict in report.verdicts}


def missed(report: Report) -> set[str]:
    return {check.key for check in report.checks if not check.met}


def test_without_a_fault_everything_passes(clean_goals: Path, clean_world: Path) -> None:
    report = judged(clean_goals, clean_world)
    assert statuses(report) == dict.fromkeys(("data", "MOA", "belief", "world model"), "pass"), missed(report)


def test_double_softmax_fails_the_model_of_others(data: Path, clean_world: Path, tmp_path: Path) -> None:
    report = judged(goals(data, tmp_path / "run", legacy_double_softmax=True), clean_world)
    assert statuses(report) | {"belief": "?"} == {"data": "pass", "MOA": "fail", "belief": "?", "world model": "pass"}
    assert report.status("belief") != "fail"
    by_heart = next(check for check in report.checks if check.name == "one batch by heart")
    assert by_heart.value is not None and by_heart.value > 1.1  # probabilities as logits cannot go below 1.165 nats


def test_rows_after_exit_fail_the_data(data: Path, clean_world: Path, tmp_path: Path) -> None:
    report = judged(goals(data, tmp_path / "run", legacy_post_exit_rows=True, epochs=3), clean_world)
    assert {module for module, status in statuses(report).items() if status == "fail"} == {"data"}
    assert "data/rows after exit" in missed(report)


def test_labels_shuffled_in_training_fail_the_model_of_others(
    data: Path, clean_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_splits = goals_module.make_splits

    def shuffled(config: PretrainGoalsConfig, dataset: Dataset) -> Splits:
        splits = true_splits(config, dataset)
        order = torch.randperm(splits.train.rows, generator=torch.Generator().manual_seed(0))
        train = splits.train._replace(action=splits.train.action[order], mask=splits.train.mask[order])
        return splits._replace(train=train)

    monkeypatch.setattr(goals_module, "make_splits", shuffled)
    report = judged(goals(data, tmp_path / "run", epochs=3), clean_world)
    assert {module for module, status in statuses(report).items() if status == "fail"} == {"MOA"}
    assert "MOA/excess without goal" in missed(report)


def test_channels_swapped_in_training_fail_the_world_model(
    data: Path, clean_goals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Players 2 and 3 change places in all planes, but not in the joint action: the original's fault."""
    true_transitions = pretrain_world.transitions

    def swapped(dataset: Dataset, split: SplitName, rows: int = 0) -> Transitions:
        found = true_transitions(dataset, split, rows)
        obs, next_obs = (planes[..., [0, 2, 1, 3, 4, 5, 6]] for planes in (found.obs, found.next_obs))
        return found._replace(obs=obs, next_obs=next_obs, outcome=found.outcome[:, [0, 2, 1, 3]])

    monkeypatch.setattr(pretrain_world, "transitions", swapped)
    report = judged(world(data, tmp_path / "run"), clean_goals)
    assert {module for module, status in statuses(report).items() if status == "fail"} == {"world model"}
    assert "world model/position accuracy, worst player" in missed(report)


# --- faults in the files --------------------------------------------------------------------------------------------


def spoilt(data: Path, out: Path, change: Callable[[Part, int], Part]) -> Path:
    """A copy of a data set's run directory with changed rows."""
    shutil.copytree(data, out)
    dataset = load_dataset(data)
    part = change(Part(dataset.rows, dataset.offsets), dataset.game.players)
    told = metadata(dataset.game, dataset.about)
    pq.write_table(rows_table(part.rows).replace_schema_metadata(told), out / "data" / "rows.parquet")
    steps = part.offsets.diff().view(-1, dataset.game.players)
    sequences = _sequence_table(part.rows._replace(episode=part.rows.episode), steps, 0)
    old = pq.read_table(out / "data" / "sequences.parquet")
    for name in ("offset", "split"):
        sequences = sequences.append_column(name, old[name])
    pq.write_table(sequences.replace_schema_metadata(told), out / "data" / "sequences.parquet")
    return out


def shuffle_labels(part: Part, players: int) -> Part:
    order = torch.randperm(part.rows.size, generator=torch.Generator().manual_seed(0))
    return Part(part.rows._replace(a=part.rows.a[order]), part.offsets)


def swap_channels(part: Part, players: int) -> Part:
    return Part(part.rows._replace(next_obs=part.rows.next_obs[..., [0, 2, 1, 3, 4, 5, 6]]), part.offsets)


@pytest.mark.parametrize(
    ("change", "found_by"),
    [
        (shuffle_labels, "data/true labels"),
        (swap_channels, "data/replay equality"),
        (with_rows_after_exit, "data/rows after exit"),
    ],
)
def test_faults_in_the_files_fail_the_data(
    change: Callable[[Part, int], Part], found_by: str, data: Path, tmp_path: Path
) -> None:
    report = judged(spoilt(data, tmp_path / "data", change))
    assert statuses(report) == {"data": "fail"}
    assert found_by in missed(report)


def test_models_judged_on_spoilt_data_are_not_blamed(
    data: Path, clean_goals: Path, clean_world: Path, tmp_path: Path
) -> None:
    report = judged(clean_goals, clean_world, data=spoilt(data, tmp_path / "data", shuffle_labels))
    assert statuses(report)["data"] == "fail"
    assert statuses(report)["MOA"] == "blocked"
    assert {module for module, status in statuses(report).items() if status == "fail"} == {"data"}


def test_the_spoilt_copy_is_faithful_otherwise(data: Path, tmp_path: Path) -> None:
    same = load_dataset(spoilt(data, tmp_path / "data", lambda part, players: part))
    original = load_dataset(data)
    for name in Rows._fields:
        assert torch.equal(getattr(same.rows, name), getattr(original.rows, name)), name
    assert torch.equal(same.offsets, original.offsets) and torch.equal(same.split_of, original.split_of)
