"""A world's log on disk: one Parquet file per world, one row, every column of every table a list.

Arrow keeps a list column as flat values and offsets, so a world reads into numpy without a loop, files of many worlds
can be concatenated, and a whole world is still one file that appears by one rename.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.files import replacing
from marlab.market.logs.daystate import LINES, SCHEDULES
from marlab.market.logs.worldlog import TABLES, WorldLog

SCHEMA = 1
_COUNTING = tuple(
    f"{table}.{column}" for table in TABLES for column in ("seq", "call", "negotiation") if column in TABLES[table]
)
"""Columns that mostly count up: their differences take a quarter of the space."""


def write_world(path: Path, log: WorldLog) -> None:
    """Write a world to `path` by way of a temporary name; an existing file is replaced."""
    columns: dict[str, pa.Array] = {"meta": pa.array([json.dumps({**log.meta, "schema": SCHEMA}, sort_keys=True)])}
    for name, kinds in TABLES.items():
        for column, kind in kinds.items():
            columns[f"{name}.{column}"] = _one_list(np.asarray(log.tables[name][column]).astype(kind))
    for name in SCHEDULES:
        kind = "float64" if name in ("pay", "receive") else "int16"
        columns[f"days.{name}"] = _one_list(log.schedules[name].astype(kind).ravel())
    columns["days.exogenous_reach"] = _one_list(log.reach.astype("int16").ravel())
    table = pa.table(columns)
    packed = {f"{name}.list.element": "DELTA_BINARY_PACKED" for name in _COUNTING}
    plain = [f"{name}.list.element" for name in table.column_names if name != "meta" and name not in _COUNTING]
    with replacing(path) as temporary:
        # the types survive without a stored schema, and a hundred columns make it 14 KB
        pq.write_table(
            table, temporary, compression="zstd", compression_level=9, write_statistics=False, store_schema=False,
            use_dictionary=plain, column_encoding=packed,
        )  # fmt: skip


def read_world(path: Path) -> WorldLog:
    """Read a world; a file that is something else raises UserError."""
    try:
        table = pq.read_table(path)
        meta = json.loads(table.column("meta")[0].as_py())
    except (OSError, KeyError, pa.ArrowInvalid, ValueError) as error:
        raise UserError(f"{path} is not a log of a market world: {error}") from None
    if not isinstance(meta, dict):
        raise UserError(f"{path} is not a log of a market world: its meta data is {meta!r}, expected a table.")
    if meta.get("schema") != SCHEMA:
        schema = meta.get("schema")
        raise UserError(f"{path} has log schema {schema}; this version reads schema {SCHEMA}: collect again.")
    flat = {name: _flat(table.column(name)) for name in table.column_names if name != "meta"}
    tables = {name: {column: flat[f"{name}.{column}"] for column in kinds} for name, kinds in TABLES.items()}
    rows = len(tables["days"]["agent"])
    schedules = {name: flat[f"days.{name}"].reshape(rows, -1) for name in SCHEDULES}
    return WorldLog(meta, tables, schedules, flat["days.exogenous_reach"].reshape(rows, LINES))


def _one_list(values: NDArray[Any]) -> pa.Array:
    offsets = pa.array([0, len(values)], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values))


def _flat(column: pa.ChunkedArray) -> NDArray[Any]:
    return column.chunk(0).values.to_numpy(zero_copy_only=False)
