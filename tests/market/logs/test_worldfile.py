"""A world's log on disk: nothing is lost, and another file is refused in one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marlab.lab.errors import UserError
from marlab.market.logs.find import find_logs
from marlab.market.logs.worldfile import read_world, write_world
from tests.market.sample_tools import tiny_world


def test_a_world_comes_back_as_it_was_written(tmp_path: Path) -> None:
    world, path = tiny_world(), tmp_path / "w.parquet"
    write_world(path, world)
    again = read_world(path)
    assert again.meta == world.meta
    for name, table in world.tables.items():
        for column, values in table.items():
            np.testing.assert_array_equal(again.tables[name][column], values, err_msg=f"{name}.{column}")
    for name, values in world.schedules.items():
        np.testing.assert_array_equal(again.schedules[name], values)
    np.testing.assert_array_equal(again.reach, world.reach)
    written = path.read_bytes()
    write_world(path, again)
    assert path.read_bytes() == written  # the same world is the same file


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no world")
    pq.write_table(pa.table({"meta": ["[]"]}), tmp_path / "table.parquet")
    for name in ("text", "table", "missing"):
        with pytest.raises(UserError, match=f"{name}.parquet is not a log"):
            read_world(tmp_path / f"{name}.parquet")


def test_a_later_schema_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marlab.market.logs.worldfile.SCHEMA", 7)
    write_world(tmp_path / "w.parquet", replace(tiny_world()))
    monkeypatch.undo()
    with pytest.raises(UserError, match="has log schema 7; this version reads schema 2"):
        read_world(tmp_path / "w.parquet")


def damaged(path: Path, **changes: Any) -> Path:
    """A world's file with some columns replaced, or left out where the value is None."""
    write_world(path, tiny_world())
    columns = {name: pq.read_table(path).column(name) for name in pq.read_table(path).column_names}
    for name, value in changes.items():
        columns[name] = value
    pq.write_table(pa.table({name: value for name, value in columns.items() if value is not None}), path)
    return path


def meta(**changes: Any) -> list[str]:
    return [json.dumps({**tiny_world().meta, "schema": 2, **changes})]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decisions.op": None}, "lacks the column decisions.op"),
        ({"decisions.op": pa.array([[0, 1]], pa.list_(pa.int8()))}, "decisions are not equally long"),
        ({"decisions.op": pa.array([["a"]])}, "decisions.op is no list of numbers"),
        ({"decisions.op": pa.array([7])}, "decisions.op is no list of numbers"),
        ({"decisions.op": pa.array([None], pa.list_(pa.int8()))}, "decisions.op is no list of numbers"),
        ({"decisions.op": pa.array([[0.5]], pa.list_(pa.float64()))}, "decisions.op holds float64"),
        ({"days.q_in": pa.array([[1, 2, 3]], pa.list_(pa.int16()))}, "days.q_in has 3 values for"),
        ({"meta": meta(agents=None)}, "no agents"),
        ({"meta": meta(agents=[{"id": 1}])}, "does not say who an agent is"),
        ({"meta": meta(agents=[])}, "names what is not there"),
        ({"meta": meta(world_id=3)}, "no world_id"),
        ({"meta": meta(spec=[1])}, "spec"),
        ({"meta": ["[" * 100_000]}, "is not a log"),
        ({"meta": ["1" * 5000]}, "is not a log"),
        ({"meta": pa.array([5])}, "is not a log"),
    ],
)
def test_a_damaged_world_is_told_in_one_sentence(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = damaged(tmp_path / "w.parquet", **changes)
    with pytest.raises(UserError, match=said):
        read_world(path)
    found = find_logs(_beside(tmp_path))
    assert len(found.logs) + len(found.bad) == 2  # the head may still be whole, but nothing is raised


def _beside(folder: Path) -> Path:
    write_world(folder / "good.parquet", tiny_world())
    return folder


def test_references_that_lead_nowhere_are_seen(tmp_path: Path) -> None:
    world = tiny_world()
    decisions = {**world.tables["decisions"], "negotiation": world.tables["decisions"]["negotiation"] + 10_000}
    write_world(tmp_path / "w.parquet", replace(world, tables={**world.tables, "decisions": decisions}))
    with pytest.raises(UserError, match=r"decisions\.negotiation names what is not there"):
        read_world(tmp_path / "w.parquet")
