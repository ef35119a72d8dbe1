"""A world's log on disk: one Parquet file per world, one row, every column of every table a list.

Arrow keeps a list column as flat values and offsets, so a world reads into numpy without a loop, files of many worlds
can be concatenated, and a whole world is still one file that appears by one rename.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_parquet
from marlab.lab.runs.files import replacing
from marlab.market.logs.daystate import LINES, SCHEDULES
from marlab.market.logs.worldlog import ACCEPT, END, NONE, REJECT, TABLES, Table, WorldLog

SCHEMA = 2
_COUNTING = tuple(
    f"{table}.{column}" for table in TABLES for column in ("seq", "call", "negotiation") if column in TABLES[table]
)
"""Columns that mostly count up: their differences take a quarter of the space."""
_KINDS = {f"{table}.{column}": kind for table, kinds in TABLES.items() for column, kind in kinds.items()}
_KINDS |= {f"days.{name}": "float64" if name in ("pay", "receive") else "int16" for name in SCHEDULES}
_KINDS["days.exogenous_reach"] = "int16"


def write_world(path: Path, log: WorldLog) -> None:
    """Write a world to `path` by way of a temporary name; an existing file is replaced."""
    columns: dict[str, pa.Array] = {"meta": pa.array([json.dumps({**log.meta, "schema": SCHEMA}, sort_keys=True)])}
    for name, kinds in TABLES.items():
        for column, kind in kinds.items():
            columns[f"{name}.{column}"] = _one_list(np.asarray(log.tables[name][column]).astype(kind))
    for name, values in {**log.schedules, "exogenous_reach": log.reach}.items():
        columns[f"days.{name}"] = _one_list(values.astype(_KINDS[f"days.{name}"]).ravel())
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
    """Read a world; a file that is something else, or damaged, raises UserError."""
    try:
        table = read_parquet(path)
        names = [name for name in table.column_names if name != "meta"]
        meta = json.loads(table.column("meta")[0].as_py())
    except (OSError, LookupError, TypeError, RecursionError, pa.ArrowException, ValueError) as error:
        raise UserError(f"{path} is not a log of a market world: {_first_line(error)}.") from None
    check_meta(path, meta)
    flat = {name: _flat(path, name, table.column(name)) for name in names}
    lacks = [name for name in _columns() if name not in flat]
    if lacks:
        raise UserError(f"{path} is damaged: it lacks the column {lacks[0]}.")
    tables = {name: {column: flat[f"{name}.{column}"] for column in kinds} for name, kinds in TABLES.items()}
    for name, columns in tables.items():
        lengths = {column: len(values) for column, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise UserError(f"{path} is damaged: the columns of {name} are not equally long.")
    _check_references(path, tables, len(meta["agents"]))
    rows = len(tables["days"]["agent"])
    schedules = {name: _by_day(path, f"days.{name}", flat, rows) for name in SCHEDULES}
    reach = _by_day(path, "days.exogenous_reach", flat, rows, LINES)
    return WorldLog(meta, tables, schedules, reach)


def check_meta(path: Path, meta: Any) -> None:
    """Refuse meta data that does not tell which world it is and who played in it."""
    if not isinstance(meta, dict):
        raise UserError(f"{path} is not a log of a market world: its meta data is {str(meta)[:80]!r}, not a table.")
    if meta.get("schema") != SCHEMA:
        schema = str(meta.get("schema"))[:40]
        raise UserError(f"{path} has log schema {schema}; this version reads schema {SCHEMA}: collect again.")
    agents = meta.get("agents")
    if not isinstance(meta.get("world_id"), str) or not isinstance(agents, list):
        raise UserError(f"{path} is damaged: its meta data has no world_id or no agents.")
    for agent in agents:
        known = isinstance(agent, dict) and all(isinstance(agent.get(key), str) for key in ("id", "type", "full_type"))
        final = agent.get("final_balance", 0.0) if known else None
        if not known or not isinstance(agent.get("tracked"), bool) or not isinstance(final, int | float):
            raise UserError(f"{path} is damaged: its meta data does not say who an agent is.")
    if not isinstance(meta.get("spec", {}), dict):
        raise UserError(f"{path} is damaged: the spec in its meta data is no table.")


def _columns() -> Iterator[str]:
    """Every column that a world has, but for its meta data."""
    yield from (f"{name}.{column}" for name, kinds in TABLES.items() for column in kinds)
    yield from (f"days.{name}" for name in (*SCHEDULES, "exogenous_reach"))


def _check_references(path: Path, tables: dict[str, Table], agents: int) -> None:
    """Agents and negotiations are named by number; one that is not there would be looked up elsewhere."""
    counts = {"negotiation": len(tables["negotiations"]["day"])}
    counts |= dict.fromkeys(("agent", "seller", "buyer", "caller", "by", "ended_by"), agents)
    for name, columns in tables.items():
        for column, values in columns.items():
            least = 0 if column in ("agent", "by") or (name, column) == ("decisions", "negotiation") else NONE
            if column in counts and len(values) and not least <= values.min() <= values.max() < counts[column]:
                raise UserError(f"{path} is damaged: {name}.{column} names what is not there.")
    if not np.isin(tables["decisions"]["op"], (ACCEPT, REJECT, END)).all():
        raise UserError(f"{path} is damaged: decisions.op holds what is no operator.")


def _by_day(path: Path, name: str, flat: Table, rows: int, slots: int | None = None) -> NDArray[Any]:
    """[rows, slots] from a flat column."""
    values = flat[name]
    each = len(values) // max(1, rows) if slots is None else slots
    if each * rows != len(values) or (rows and not each):
        raise UserError(f"{path} is damaged: {name} has {len(values)} values for {rows} mornings.")
    return values.reshape(rows, each)


def _one_list(values: NDArray[Any]) -> pa.Array:
    offsets = pa.array([0, len(values)], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values))


def _flat(path: Path, name: str, column: pa.ChunkedArray) -> NDArray[Any]:
    """The values of a column's only list, as the type that the schema gives to it."""
    kind = np.dtype(_KINDS.get(name, "float64"))
    whole = len(column) == 1 and pa.types.is_list(column.type)
    numeric = whole and (pa.types.is_integer(column.type.value_type) or pa.types.is_floating(column.type.value_type))
    if not numeric or column.null_count or column.chunk(0).values.null_count:
        raise UserError(f"{path} is damaged: the column {name} is no list of numbers.")
    values = column.chunk(0).values.to_numpy(zero_copy_only=False)
    if values.dtype.kind != kind.kind:
        raise UserError(f"{path} is damaged: the column {name} holds {values.dtype}, expected {kind}.")
    return values


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
