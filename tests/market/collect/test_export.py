"""`marlab market export`: which worlds and agents it writes, and what it says when there is nothing to write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.market.collect.command import ExportConfig
from marlab.market.collect.export import export
from marlab.market.logs.daystate import SCHEDULES
from marlab.market.logs.tracker import find_trackers, read_tracker, write_tracker
from marlab.market.logs.worldfile import read_world, write_world
from marlab.market.logs.worldlog import TABLES, WorldLog
from tests.market.logs.test_tracker import assert_same
from tests.market.sample_tools import empty_table
from tests.market.tracker_example import ME, NAMES, example_log


def example_world(world_id: str) -> WorldLog:
    """The log made by hand as a world in which one agent is tracked, and a second one that did nothing."""
    log = example_log(world_id)
    days = {"agent": np.full(2, ME)} | {name: getattr(log.days, name) for name in TABLES["days"] if name != "agent"}
    tables = {name: getattr(log, name) for name in ("negotiations", "decisions", "contracts", "prices", "reports")}
    agents = [
        {"id": name, "type": log.agent_type if i == ME else "Other", "full_type": log.full_type, "tracked": i == ME}
        for i, name in enumerate(NAMES)
    ]
    agents[ME]["final_balance"] = log.final_balance
    return WorldLog(
        {"world_id": world_id, "agents": agents},
        tables | {"days": days} | {name: empty_table(name) for name in ("offers", "factories", "evenings")},
        {name: getattr(log.days, name)[:, :11] for name in SCHEDULES},
        log.days.exogenous_reach,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with two worlds, a table that is none, and a broken file."""
    for world_id in ("a", "b"):
        write_world(tmp_path / "run" / "worlds" / f"{world_id}.parquet", example_world(world_id))
    pq.write_table(pa.table({"meta": ["x"]}), tmp_path / "run" / "logs.parquet")
    (tmp_path / "run" / "broken.parquet").write_bytes(b"PAR")
    return tmp_path / "run"


def test_every_tracked_agent_of_every_world(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["market", "export", str(run), "--format", "tracker"]) == 0
    said = capsys.readouterr().out
    assert "left out: " in said and "broken.parquet is damaged" in said and "2 files of 2 worlds, " in said
    files = find_trackers(run)
    assert [path.parent for path in files] == [run / "tracker_logs"] * 2
    for path, world_id in zip(files, ("a", "b")):
        assert_same(read_tracker(path), read_world(run / "worlds" / f"{world_id}.parquet").agent(ME))


def test_one_world_compressed_elsewhere(run: Path, tmp_path: Path) -> None:
    done = export(ExportConfig(str(run / "worlds" / "a.parquet"), output_dir=tmp_path / "out", compressed=True))
    (path,) = find_trackers(tmp_path / "out")
    assert path.name.endswith(".json.gz") and done.size == path.stat().st_size
    assert read_tracker(path).world_id == "a"


def test_agents_are_chosen_by_class(run: Path) -> None:
    assert export(ExportConfig(str(run), agent_name="Pe")).files == 2
    with pytest.raises(UserError, match="No log is of an agent 'enguin'; the logs are of PenguinAgent"):
        export(ExportConfig(str(run), agent_name="enguin"))


def test_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no logs"):
        export(ExportConfig(str(tmp_path)))
    write_tracker(example_log(), tmp_path)
    with pytest.raises(UserError, match="holds no recorded world"):
        export(ExportConfig(str(tmp_path)))
    with pytest.raises(UserError, match="There is no run 'never-made'"):
        export(ExportConfig("never-made"))


def test_a_world_that_is_damaged_inside_is_left_out_like_in_samples(run: Path) -> None:
    path = run / "worlds" / "a.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["decisions.op"]), path)
    done = export(ExportConfig(str(run)))
    assert (done.worlds, done.files) == (1, 1)
    assert "lacks the column decisions.op" in done.bad[path.as_posix()]
