"""Recording worlds that somebody else made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scml")
from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.market import record
from marlab.market.logs.find import find_logs
from marlab.market.logs.worldfile import read_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.simulator.record import record_world
from marlab.market.simulator.worlds import WorldSpec, playing
from tests.market.simulator.test_worlds import small_world


@pytest.fixture(scope="module")
def spec() -> WorldSpec:
    return small_world(("SyncRandomStdAgent", "GreedyStdAgent"), levels=2, n_steps=8)


def same(one: WorldLog, other: WorldLog) -> bool:
    """Equal in everything that was seen; what is known about the world beside that may differ."""
    tables = all(
        np.array_equal(one.tables[table][column], other.tables[table][column])
        for table in one.tables
        for column in one.tables[table]
    )
    agents = list(one.agents) == list(other.agents)
    return tables and agents and np.array_equal(one.reach, other.reach)


def test_an_attached_recorder_writes_what_collect_writes(spec: WorldSpec, tmp_path: Path) -> None:
    with playing(spec) as world, record.attach(world, tmp_path / "logs") as recorder:
        world.run()
    assert recorder.path is not None and recorder.log is not None
    assert recorder.log.meta["failures"] == {} and recorder.log.meta["unheard_offers"] == 0
    assert same(recorder.log, record_world(spec)) and same(read_world(recorder.path), recorder.log)
    assert [log.types for log in find_logs(tmp_path / "logs").logs] == [("GreedyStdAgent", "SyncRandomStdAgent")]


def test_its_logs_become_samples(spec: WorldSpec, tmp_path: Path) -> None:
    for place in range(2):
        with playing(small_world(("SyncRandomStdAgent", "GreedyStdAgent"), levels=2, n_steps=8, seed=place)) as world:
            record.attach(world, tmp_path / "logs", agents=["SyncRandomStdAgent"])
            world.run()  # written by the last day itself
    words = [
        "--agent-name",
        "SyncRandomStdAgent",
        "--engine",
        "serial",
        "--output-dir",
        str(tmp_path / "samples"),
        "--quiet",
    ]
    assert main(["market", "samples", str(tmp_path / "logs"), *words]) == 0
    assert json.loads((tmp_path / "samples" / "reading.json").read_text())


def test_what_cannot_be_recorded_is_told(spec: WorldSpec, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no world of the Standard league"):
        record.attach(object())
    with playing(spec) as world:
        with pytest.raises(UserError, match="has no agent Nobody"):
            record.attach(world, agents=["Nobody"])
        (tmp_path / "file").touch()
        with pytest.raises(UserError, match="is a file"):
            record.attach(world, tmp_path / "file")
        world.step()
        with pytest.raises(UserError, match="before its first day"):
            record.attach(world)


def test_a_full_disk_costs_the_log_and_not_the_world(
    spec: WorldSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record, "write_world", full)
    with playing(spec) as world:
        record.attach(world, tmp_path)
        with pytest.warns(UserWarning, match="played and not recorded"):
            world.run()
    assert world.current_step == spec.n_steps and list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_leagues_own_tournament_is_recorded_by_the_decorated_class(tmp_path: Path) -> None:
    code = """
from scml.utils import anac2024_std
from scml.std import GreedyStdAgent
from tests.market.recorded_agents import RecordedSync
anac2024_std(competitors=[RecordedSync, GreedyStdAgent], n_configs=1, n_runs_per_world=1, n_steps=6, n_processes=2,
             max_worlds_per_config=2, n_competitors_per_world=2, parallelism="parallel", tournament_path=PATH)
""".replace("PATH", repr(str(tmp_path / "league")))
    env = {"MARLAB_TEST_LOGS": str(tmp_path / "logs"), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    logs = find_logs(tmp_path / "logs").logs
    assert len(logs) == 2 and {log.types for log in logs} == {("RecordedSync",)}
    assert len({log.world for log in logs}) == 2 and len({log.market for log in logs}) == 1
    assert all(read_world(log.path).meta["failures"] == {} for log in logs)
