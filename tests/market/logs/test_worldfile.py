"""A world's log on disk: nothing is lost, and another file is refused in one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marlab.lab.errors import UserError
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
    with pytest.raises(UserError, match="has log schema 7; this version reads schema 1"):
        read_world(tmp_path / "w.parquet")
