"""Finding logs and choosing the expert."""

import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marlab.lab.errors import UserError
from marlab.market.logs.find import choose_experts, find_logs, read_logs
from marlab.market.logs.tracker import read_tracker, write_tracker
from marlab.market.logs.worldfile import read_world, write_world
from marlab.market.logs.worldlog import WorldLog
from tests.market.sample_tools import TINY, tiny_world, tracked_logs

TYPES = ["PenguinAgent", "UltraSuperMiracleSoraFinalAgentZ", "PenguinAgentTwo", "AX", "SyncRandomStdAgent"]


def test_a_name_means_a_class_or_how_it_begins():
    assert choose_experts("Pe", TYPES) == {"PenguinAgent", "PenguinAgentTwo"}
    assert choose_experts("PenguinAgent", TYPES) == {"PenguinAgent"}
    assert choose_experts("penguinagent", TYPES) == {"PenguinAgent"}
    assert choose_experts("PenguinAgentTracked", TYPES) == {"PenguinAgent"}
    assert choose_experts("scml_agents.scml2024.PenguinAgent", TYPES) == {"PenguinAgent"}
    assert choose_experts("ax", TYPES) == {"AX"}
    assert choose_experts("all", TYPES) == set(TYPES)


def test_the_middle_of_a_name_is_never_meant():
    for name in ("upe", "Agent", "Miracle"):
        with pytest.raises(UserError, match=f"No log is of an agent '{name}'; the logs are of AX, PenguinAgent"):
            choose_experts(name, TYPES)
    with pytest.raises(UserError, match="at least its first two letters"):
        choose_experts("P", TYPES)


def test_worlds_and_trackers_are_found_below_a_folder(tmp_path):
    (tmp_path / "run" / "worlds").mkdir(parents=True)
    shutil.copy(TINY, tmp_path / "run" / "worlds" / "w.parquet")
    log = replace(tracked_logs()[0], world_id="elsewhere")
    write_tracker(log, tmp_path / "other" / "deep" / "tracker_logs")
    write_tracker(log, tmp_path / "third" / "tracker_logs", compressed=True)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other" / "table.parquet")
    found = find_logs(tmp_path)
    assert [file.world for file in found.logs] == ["tiny", "elsewhere", "elsewhere"] and not found.bad
    assert found.logs[1].types == ("PenguinAgent",)
    assert found.logs[0].types == (
        "PenguinAgent",
        "RandomStdAgent",
        "SyncRandomStdAgent",
        "UltraSuperMiracleSoraFinalAgentZ",
    )
    assert [len(list(read_logs(f.path, frozenset({"PenguinAgent"})))) for f in found.logs] == [3, 1, 1]


def test_agents_of_a_run_that_was_exported_are_not_taken_twice(tmp_path):
    shutil.copy(TINY, tmp_path / "w.parquet")
    for log in tracked_logs():
        write_tracker(log, tmp_path / "tracker_logs")
    assert len(find_logs(tmp_path).logs) == 1


def test_agent_and_world_of_a_tracker_file_are_those_it_is_read_with(tmp_path):
    log = tracked_logs()[0]
    path = write_tracker(log, tmp_path / "tracker_logs")
    document = json.loads(path.read_text())
    turned = {name: document[name] for name in reversed(document)}  # entries first, ids last
    for change in ({}, {"world_id": "unknown"}, {"agent_type": "PenguinAgentTracked"}):
        for text in ({**document, **change}, {**turned, **change}):
            path.write_text(json.dumps(text))
            (found,) = find_logs(tmp_path).logs
            read = read_tracker(path)
            assert (found.world, found.types) == (read.world_id, (read.agent_type,))
            assert len(list(read_logs(path, frozenset(found.types), horizon=20))) == 1


def test_repeated_worlds_are_recognised(tmp_path):
    world = tiny_world()
    for name, change in (("a", {}), ("b", {"seed": 99}), ("c", {"agents": ["X"] * 7}), ("d", {"market_seed": 5})):
        meta = {**world.meta, "world_id": name, "spec": {**world.meta["spec"], "world_id": name, **change}}
        write_world(tmp_path / f"{name}.parquet", WorldLog(meta, world.tables, world.schedules, world.reach))
    a, b, c, d = find_logs(tmp_path).logs
    assert a.repeat == b.repeat != c.repeat and a.market == b.market == c.market != d.market


def test_damaged_files_are_named_and_nothing_at_all_is_an_error(tmp_path):
    with pytest.raises(UserError, match="There is nothing at"):
        find_logs(tmp_path / "nowhere")
    with pytest.raises(UserError, match="holds no logs"):
        find_logs(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(TINY.read_bytes()[:5000])
    with pytest.raises(
        UserError, match=r"No log in .* can be used \(1 files\); the first: .*broken\.parquet is damaged"
    ):
        find_logs(tmp_path)
    shutil.copy(TINY, tmp_path / "good.parquet")
    found = find_logs(tmp_path)
    assert len(found.logs) == 1 and list(found.bad) == [(tmp_path / "broken.parquet").as_posix()]


def test_a_oneshot_world_is_refused(tmp_path):
    world = read_world(TINY)
    meta = {**world.meta, "world_type": "SCML2024OneShotWorld"}
    write_world(tmp_path / "w.parquet", WorldLog(meta, world.tables, world.schedules, world.reach))
    with pytest.raises(UserError, match="OneShot"):
        find_logs(tmp_path)
