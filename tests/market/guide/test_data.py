"""The pipeline under the guide's names: lists of samples, their files, and the single pieces."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.guide import (
    L4DistillSample,
    MacroSample,
    MicroSample,
    compute_l1_baseline_offline,
    extract_l3_residuals,
    extract_macro_state,
    load_l4_distill_data,
    load_l4_samples,
    load_samples,
    load_tournament_data,
    reconstruct_l2_goals,
    save_l4_samples,
    save_samples,
)
from marlab.market.logs.daystate import from_mapping
from marlab.market.logs.tracker import read_tracker, write_tracker
from marlab.market.logs.tracker_days import daily_status
from marlab.market.logs.worldlog import REJECT
from marlab.market.rules import features, l1
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from tests.market.sample_tools import TINY, records_equal, tracked_logs

PENGUINS = [log for log in tracked_logs() if log.agent_type == "PenguinAgent"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder as a collection leaves it."""
    place = tmp_path_factory.mktemp("collected")
    (place / "worlds").mkdir()
    shutil.copy(TINY, place / "worlds" / "tiny.parquet")
    return place


@pytest.fixture(scope="module")
def loaded(folder):
    return load_tournament_data(folder, agent_name="Pe", num_workers=1, goal_backfill="v2")


def test_loading_gives_one_record_per_day_and_per_decision(folder, loaded, capsys):
    macro, micro = loaded
    assert len(macro) == sum(len(log.days) for log in PENGUINS)
    assert len(micro) == sum(len(log.decisions["seq"]) for log in PENGUINS)
    assert isinstance(macro[0], MacroSample) and isinstance(micro[-1], MicroSample)
    assert {sample.file_id for sample in macro} == {f"tiny/{log.agent_id}" for log in PENGUINS}
    load_tournament_data(folder, "PenguinAgent", num_workers=1)
    told = capsys.readouterr().out
    assert f"1 worlds, 3 logs of PenguinAgent: {len(macro)} macro and {len(micro)} micro samples" in told


def test_records_hold_what_the_tables_hold(loaded):
    macro, micro = loaded
    samples = micro.samples
    goals = {(s.file_id, s.day): s.goal for s in macro}
    for i in range(0, len(micro), 7):
        one = micro[i]
        rows, there = samples.histories(np.array([i]))
        np.testing.assert_array_equal(one.history, rows[0][there[0]])
        np.testing.assert_array_equal(one.goal, goals[one.file_id, one.day])
        assert one.time_mask.shape == (41,) and set(np.unique(one.time_mask)) <= {0.0, -np.inf}
        assert one.time_mask[one.time_label] == 0 and one.x_role[one.role] == 1
        assert one.negotiation_id == f"{one.file_id}/n{samples.micro['negotiation'][i]}"
    assert [records_equal(a, b) for a, b in zip(micro[:3], micro)] == [True] * 3


def test_without_backfill_goals_are_zero(folder):
    _, micro = load_tournament_data(folder, "PenguinAgent", num_workers=1)
    assert all((sample.goal == 0).all() for sample in micro)


def test_several_workers_give_the_same_samples(folder, loaded, monkeypatch):
    monkeypatch.setattr("marlab.market.guide.data.CHUNK", 1)
    other = folder / "worlds" / "again.parquet"
    shutil.copy(TINY, other)
    try:
        one = load_tournament_data(folder, "Pe", num_workers=1)
        two = load_tournament_data(folder, "Pe", num_workers=2)
    finally:
        other.unlink()
    for a, b in zip(one, two):
        assert len(a) == len(b) == 2 * len(loaded[0] if isinstance(a[0], MacroSample) else loaded[1])
        for name in a.columns:
            np.testing.assert_array_equal(a.columns[name], b.columns[name])


def test_saving_loses_nothing(loaded, tmp_path):
    macro, micro = loaded
    save_samples(macro, micro, tmp_path, horizon=40)
    assert {p.name for p in tmp_path.iterdir()} == {"l2_samples.npz", "l3_samples.npz", "l3_histories.npz"}
    macro_again, micro_again = load_samples(tmp_path)
    assert len(macro_again) == len(macro) and len(micro_again) == len(micro)
    assert all(records_equal(a, b) for a, b in zip(macro, macro_again))
    assert all(records_equal(a, b) for a, b in zip(micro, micro_again))


def test_lists_of_records_can_be_saved_too(loaded, tmp_path):
    macro, micro = list(loaded[0][:5]), list(loaded[1][3:9])
    save_samples(macro, micro, tmp_path)
    macro_again, micro_again = load_samples(tmp_path)
    assert all(records_equal(a, b) for a, b in zip(macro, macro_again, strict=True))
    assert all(records_equal(a, b) for a, b in zip(micro, micro_again, strict=True))


def test_files_of_others_are_completed_and_object_arrays_refused(loaded, tmp_path):
    micro = loaded[1]
    names = ("roles", "goals", "baselines", "residuals", "time_labels")
    np.savez(tmp_path / "l3_samples.npz", **{name: micro.columns[name] for name in names})
    np.savez(tmp_path / "l3_histories.npz", histories=micro.columns["histories"], offsets=micro.columns["offsets"])
    macro, again = load_samples(tmp_path)
    assert not macro and (again[2].time_mask == 0).all() and again[2].op == REJECT and again[2].time_valid
    np.testing.assert_array_equal(again[2].history, micro[2].history)
    ragged = np.array([np.zeros((1, 4)), np.zeros((2, 4))], dtype=object)
    np.savez(tmp_path / "l3_histories.npz", histories=ragged, offsets=np.zeros(3, int), allow_pickle=True)
    with pytest.raises(UserError, match="holds object, not plain numbers"):
        load_samples(tmp_path)
    np.savez(tmp_path / "l3_samples.npz", roles=micro.columns["roles"])
    with pytest.raises(UserError, match=r"l3_samples\.npz lacks goals, baselines"):
        load_samples(tmp_path)
    with pytest.raises(UserError, match="holds neither"):
        load_samples(tmp_path / "nowhere")
    with pytest.raises(UserError, match="look 40 days ahead, horizon is 20"):
        save_samples([], micro, tmp_path, horizon=20)


def test_coordination_samples(folder, tmp_path):
    samples = load_l4_distill_data(folder, "Pe", goal_source="v2", num_workers=1)
    assert sum(len(s.thread_ids) for s in samples) == sum(len(log.decisions["seq"]) for log in PENGUINS)
    widest = max(samples, key=lambda s: len(s.thread_ids))
    assert isinstance(widest, L4DistillSample) and widest.thread_feats.shape == (len(widest.thread_ids), 24)
    assert widest.global_feat.shape == (30,) and widest.teacher_weights.sum() == pytest.approx(1, abs=1e-6)
    save_l4_samples(samples, tmp_path)
    assert all(records_equal(a, b) for a, b in zip(samples, load_l4_samples(tmp_path), strict=True))
    with pytest.raises(UserError, match="goal_backfill l2 needs the weights"):
        load_l4_distill_data(folder, "Pe")


def test_wrong_words_are_refused(folder):
    with pytest.raises(
        UserError, match=r"No log is of an agent 'Nobody'; the logs are of PenguinAgent, RandomStdAgent"
    ):
        load_tournament_data(folder, "Nobody")
    with pytest.raises(UserError, match="strict_json_only=False is not supported"):
        load_tournament_data(folder, "Pe", strict_json_only=False)
    with pytest.raises(UserError, match="goal_backfill is 'v3', expected none, v2 or l2"):
        load_tournament_data(folder, "Pe", goal_backfill="v3")


def test_two_files_of_one_agent_are_two_logs(tmp_path):
    log = PENGUINS[0]
    short = replace(log, days=log.days.take(slice(0, 2)))
    kept = short.negotiations["day"][short.decisions["negotiation"]] < 2
    short = replace(
        short,
        decisions={name: values[kept] for name, values in short.decisions.items()},
        contracts={name: values[short.contracts["day"] < 2] for name, values in short.contracts.items()},
    )
    for place in ("a", "b"):
        write_tracker(replace(short, world_id=f"world-{place}"), tmp_path / place / "tracker_logs")
    macro, micro = load_tournament_data(tmp_path, "PenguinAgent", num_workers=1)
    assert len(macro) == 4 and len(micro) == 2 * kept.sum()
    assert sorted((s.world_id, s.day) for s in macro) == [(w, d) for w in ("world-a", "world-b") for d in (0, 1)]
    np.testing.assert_array_equal(macro[0].state_temporal, macro[2].state_temporal)


def test_a_oneshot_log_is_refused(tmp_path):
    path = write_tracker(PENGUINS[0], tmp_path / "tracker_logs")
    document = json.loads(path.read_text())
    for entry in document["entries"]:
        if entry["event"] == "agent_initialized":
            entry["data"]["league"] = "oneshot"
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match="OneShot"):
        load_tournament_data(tmp_path, "PenguinAgent", num_workers=1)


def test_single_pieces():
    log = PENGUINS[1]
    samples = extract(log, SampleOptions())
    goals = reconstruct_l2_goals(log)
    np.testing.assert_array_equal(np.stack(list(goals.values())), samples.macro["label"])
    assert list(goals) == log.days.day.astype(int).tolist()
    state = log.days.take(4)
    status = json.loads(json.dumps(daily_status(log.days, 4, [1.0, 2.0, 3.0, 4.0])))
    for told in (state, status):
        x_static, x_temporal, role = extract_macro_state(told)
        np.testing.assert_allclose(x_static, features.static_features(state, features.FeatureOptions()), rtol=1e-12)
        assert x_temporal.shape == (41, 10) and role.tolist() == [1, 1]
        for buying in (True, False):
            base = l1.baseline(state, l1.caps(state, l1.L1Options()), not buying, l1.L1Options())
            np.testing.assert_allclose(compute_l1_baseline_offline(told, buying), np.stack(base), rtol=1e-12)
    micro = extract_l3_residuals(log, goal_of_day=goals)
    assert len(micro) == len(log.decisions["seq"])
    np.testing.assert_array_equal(micro[0].goal, goals[micro[0].day])
    richer = [from_mapping({**log.days.take(i)._asdict(), "balance": 1e7}) for i in range(len(log.days))]
    changed = extract_l3_residuals(log, richer)
    assert (changed.columns["aux"][:, 2] > micro.columns["aux"][:, 2] + 50).all()


def test_tracker_files_give_the_samples_of_the_recorded_world(tmp_path):
    for log in PENGUINS:
        again = read_tracker(write_tracker(log, tmp_path))
        a, b = extract(log, SampleOptions()), extract(again, SampleOptions())
        assert a.rows("micro") == b.rows("micro")
        for name in ("op", "baseline", "residual", "time_label", "time_open", "aux", "thread", "alpha"):
            np.testing.assert_allclose(a.micro[name], b.micro[name], rtol=1e-6, atol=1e-6, err_msg=name)
