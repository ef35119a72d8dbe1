"""The call sequences of the training guide that concern data, as written there but for the import lines.

Each runs on the same tiny real world twice: as the recorder wrote it, and as tracker logs. The lines in between that
train and save networks (TrainConfig, HRLXFTrainer, save_model) are not about data; here an L2 network without training
is saved in their place, because the backfill needs one.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.market.guide import (
    HorizonManagerPPO,
    L1SafetyLayer,
    SampleOptions,
    StateBuilder,
    compute_l1_baseline_offline,
    extract_l3_residuals,
    extract_macro_state,
    load_l4_distill_data,
    load_samples,
    load_tournament_data,
    reconstruct_l2_goals,
    save_samples,
)
from marlab.market.logs.tracker import write_tracker
from marlab.market.logs.worldfile import read_world
from marlab.market.logs.worldlog import REJECT
from marlab.market.networks.weights import save_network
from tests.market.tracker_example import example_log

TINY = Path(__file__).parents[2] / "golden" / "market" / "tiny_world.parquet"
PENGUINS = 3
DAYS = 14


@pytest.fixture(scope="module", params=["recorded", "tracker"])
def DIR(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "recorded":
        (folder / "worlds").mkdir()
        shutil.copy(TINY, folder / "worlds" / "tiny.parquet")
    else:
        for log in read_world(TINY).tracked():
            write_tracker(log, folder / "batch_1" / "tracker_logs")
    return str(folder)


@pytest.fixture(scope="module")
def OUT(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the weights that the guide's first training leaves."""
    folder = tmp_path_factory.mktemp("out")
    torch.manual_seed(0)
    save_network(folder / "l2_bc.pt", HorizonManagerPPO(horizon=40), data=to_dict(SampleOptions()))
    return str(folder)


def same(one: Any, other: Any) -> bool:
    """Whether two samples are equal but for how their negotiation and file are called."""
    return all(
        np.array_equal(getattr(one, f.name), getattr(other, f.name), equal_nan=f.type not in ("str", "list[str]"))
        for f in fields(one)
        if f.name not in ("negotiation_id", "thread_ids", "file_id", "origin", "day_row")
    )


# --- L2, then backfill, then L3 -----------------------------------------------------------------------------------


def test_l2_then_backfill_then_l3(DIR: str, OUT: str) -> None:
    macro, _ = load_tournament_data(DIR, agent_name="Pe", num_workers=4, goal_backfill="none")
    _, micro = load_tournament_data(DIR, agent_name="Pe", goal_backfill="l2", l2_model_path=f"{OUT}/l2_bc.pt")

    assert len(macro) == PENGUINS * DAYS
    assert macro[0].state_static.shape == (12,) and macro[0].state_temporal.shape == (41, 10)
    assert len(micro) == 56 + 70 + 13
    goals = np.stack([sample.goal for sample in micro])
    assert (goals >= 0).all() and goals.any(1).all()
    days = {(sample.file_id, sample.day): tuple(sample.goal) for sample in micro}
    assert all(days[sample.file_id, sample.day] == tuple(sample.goal) for sample in micro)
    assert len(set(days.values())) > DAYS  # goals differ from day to day


def test_without_backfill_goals_are_zero(DIR: str) -> None:
    _, micro = load_tournament_data(DIR, agent_name="Pe", goal_backfill="none")
    assert not np.stack([sample.goal for sample in micro]).any()
    with pytest.raises(UserError, match="l2_model_path"):
        load_tournament_data(DIR, agent_name="Pe", goal_backfill="l2")


def test_the_filter_is_a_class_name_or_its_beginning(DIR: str) -> None:
    by_prefix, _ = load_tournament_data(DIR, agent_name="Pe", num_workers=1)
    by_name, _ = load_tournament_data(DIR, agent_name="PenguinAgent", num_workers=1)
    assert len(by_prefix) == len(by_name) == PENGUINS * DAYS  # Ultra*Supe*rMiracle... has "pe" in the middle only
    ultra, _ = load_tournament_data(DIR, agent_name="UltraSuperMiracleSoraFinalAgentZ", num_workers=1)
    assert len(ultra) == DAYS
    with pytest.raises(
        UserError, match=r"DecentralizingAgent.*PenguinAgent, RandomStdAgent, SyncRandomStdAgent, Ultra"
    ):
        load_tournament_data(DIR, agent_name="DecentralizingAgent")


# --- L4 -----------------------------------------------------------------------------------------------------------


def test_l4(DIR: str, OUT: str) -> None:
    samples = load_l4_distill_data(
        DIR, agent_name="Pe", goal_source="l2", l2_model_path=f"{OUT}/l2_bc.pt", num_workers=4
    )
    assert sum(len(sample.thread_times) for sample in samples) == 56 + 70 + 13
    for sample in samples:
        assert sample.global_feat.shape == (30,) and sample.thread_feats.shape == (len(sample.thread_ids), 24)
        assert sample.teacher_weights.sum() == pytest.approx(1, abs=1e-5)


# --- save samples -------------------------------------------------------------------------------------------------


def test_save_samples(DIR: str, tmp_path: Path) -> None:
    macro, micro = load_tournament_data(DIR, agent_name="Pe", goal_backfill="v2", num_workers=1)
    save_samples(macro, micro, f"{tmp_path}/processed_samples", horizon=40)
    files = sorted(path.name for path in (tmp_path / "processed_samples").iterdir())
    assert files == ["l2_samples.npz", "l3_histories.npz", "l3_samples.npz"]
    macro_again, micro_again = load_samples(f"{tmp_path}/processed_samples")
    assert len(macro_again) == len(macro) and len(micro_again) == len(micro)
    assert all(same(a, b) for a, b in zip(macro, macro_again))
    assert all(same(a, b) for a, b in zip(micro, micro_again))
    stored = np.load(tmp_path / "processed_samples" / "l3_samples.npz", allow_pickle=False)
    assert {"roles", "x_roles", "goals", "baselines", "residuals", "time_labels", "time_masks"} <= set(stored.files)


# --- single pieces ------------------------------------------------------------------------------------------------


def test_layers_and_states_of_one_day(DIR: str) -> None:
    macro, micro = load_tournament_data(DIR, agent_name="Pe", num_workers=1)
    log = next(log for log in read_world(TINY).tracked() if log.agent_id == "03Pe@1")
    state = log.days.take(3)

    out = L1SafetyLayer(horizon=40).compute(state, is_buying=True)
    assert out.Q_safe.shape == out.Q_safe_sell.shape == out.time_mask.shape == (41,) and out.B_free >= 0
    np.testing.assert_array_equal(np.stack(out.baseline), compute_l1_baseline_offline(state, is_buying=True))

    x_static, x_temporal, x_role = StateBuilder(horizon=40).build(state)
    np.testing.assert_array_equal(x_static, extract_macro_state(state)[0])
    mine = [sample for sample in macro if sample.file_id == "tiny/03Pe@1"]
    np.testing.assert_allclose(mine[3].state_static, x_static, atol=1e-6)
    np.testing.assert_allclose(mine[3].state_temporal[:, :6], x_temporal[:, :6], atol=1e-6)  # 6-9 know offers
    assert x_role.tolist() == [1, 1]

    goals = reconstruct_l2_goals(log)
    np.testing.assert_array_equal(goals[3], mine[3].goal)
    residuals = extract_l3_residuals(log)
    expected = [sample for sample in micro if sample.file_id == "tiny/03Pe@1"]
    assert len(residuals) == len(expected) == 70 and all(same(a, b) for a, b in zip(residuals, expected))


# --- what the samples of a folder are -----------------------------------------------------------------------------


def test_both_kinds_of_logs_give_the_same_samples(tmp_path: Path) -> None:
    for log in read_world(TINY).tracked():
        write_tracker(log, tmp_path / "tracker_logs", compressed=True)
    recorded = load_tournament_data(TINY, agent_name="all", num_workers=1, goal_backfill="v2")
    exported = load_tournament_data(tmp_path, agent_name="all", num_workers=1, goal_backfill="v2")
    for one, other in zip(recorded, exported):
        by_file = [sorted(samples, key=lambda s: s.file_id) for samples in (one, other)]
        assert len(by_file[0]) == len(by_file[1]) > 0
        assert all(same(a, b) for a, b in zip(*by_file))


def test_two_files_with_one_agent_id_give_the_days_of_both(tmp_path: Path) -> None:
    for world in ("world-a", "world-b"):
        write_tracker(example_log(world), tmp_path / "tracker_logs")
    macro, micro = load_tournament_data(tmp_path, agent_name="PenguinAgent", num_workers=1)
    assert [(s.world_id, s.day) for s in macro] == [(w, d) for w in ("world-a", "world-b") for d in (0, 1)]
    assert len(micro) == 12 and len({s.file_id for s in micro}) == 2


def test_no_history_holds_the_offer_that_is_its_label(DIR: str) -> None:
    _, micro = load_tournament_data(DIR, agent_name="all", num_workers=1)
    own = [s for s in micro if s.op == REJECT]
    assert len(own) > 300
    for sample in own:
        if len(sample.history):
            assert not sample.history[-1][3], "the last row is the partner's offer, never the own one to be predicted"
    assert all(s.history[-1][3] == 0 for s in micro if s.op != REJECT)


def test_tracked_subclasses_and_unnamed_worlds(tmp_path: Path) -> None:
    """Class names end in Tracked, worlds are called unknown: still the expert's, and each file its own world."""
    folder = tmp_path / "tracker_logs"
    for world in ("a", "b"):
        path = write_tracker(example_log(world), folder)
        told = json.loads(path.read_text()) | {"world_id": "unknown", "agent_type": "PenguinAgentTracked"}
        for entry in told["entries"]:
            if entry["event"] == "agent_initialized":
                entry["data"]["agent_type_raw"] = "PenguinAgentTracked"
        path.write_text(json.dumps(told))
    macro, _ = load_tournament_data(tmp_path, agent_name="PenguinAgent", num_workers=1)
    assert len(macro) == 4 and len({s.world_id for s in macro}) == 2


def test_oneshot_is_refused(tmp_path: Path) -> None:
    path = write_tracker(example_log(), tmp_path)
    told = json.loads(path.read_text())
    told["entries"][0]["data"]["league"] = "oneshot"
    path.write_text(json.dumps(told))
    with pytest.raises(UserError, match="OneShot world; only the Standard league"):
        load_tournament_data(tmp_path, agent_name="PenguinAgent", num_workers=1)
