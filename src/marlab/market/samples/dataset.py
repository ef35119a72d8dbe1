"""Samples as tables of arrays: in memory, on disk as memory-mapped columns, and one appended to the other.

A dataset folder holds `dataset.json` (schema version, options, sizes), `logs.parquet` (one row per log) and, for each
split, one `.npy` file per column. Opening it maps the files; nothing is read before it is used, nothing is unpickled.

    logs    one row per (agent, world)
    macro   one row per (log, day): what L2 sees and should answer
    calls   one row per joint decision: what L4 sees
    micro   one row per own decision in one negotiation: what L3 sees and should answer, and a thread of L4
    offers  rows [quantity, price, delta, mine] of all negotiations, in order

Rows refer to each other by number: a decision's history is the slice of `offers` that starts at `history` and is
`history_length` long, so the offers of a negotiation are stored once and not again for each of its decisions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import map_npy, read_npz, read_parquet
from marlab.lab.runs.files import append, first_line, read_json, replacing, trusting, write_json
from marlab.market.samples import integrity
from marlab.market.samples.options import Sizes

SCHEMA = 2
FILE = "dataset.json"
HISTORY = 20
"""L3 sees at most this many offers of a negotiation, the latest ones."""
Columns = dict[str, NDArray[Any]]


class Column(NamedTuple):
    """A column of a table: its element type, the shape of a cell, and the table whose rows it names."""

    kind: str
    cell: tuple[int, ...] = ()
    refers: str = ""


def schema(sizes: Sizes) -> dict[str, dict[str, Column]]:
    """All tables and their columns; `docs/reference/market-files.md` tells what they mean."""
    slots = sizes.horizon + 1
    return {
        "macro": {
            "log": Column("int64", refers="logs"),
            "day": Column("int16"),
            "x_static": Column("float32", (sizes.static,)),
            "x_temporal": Column("float32", (slots, sizes.temporal)),
            "x_role": Column("float32", (2,)),
            "extra": Column("float32", (sizes.extra,)),
            "units": Column("float32"),  # the normaliser of quantities: lines times days of the game
            "needs": Column("float32", (2,)),  # units missing to buy and to sell, as the simulator states them
            "label": Column("float32", (16,)),  # v2 goal: what the expert did that day
            "goal": Column("float32", (16,)),  # what L3 and L4 are told: zeros, the label, or L2's prediction
            "reward": Column("float32"),  # what the day earned (`reward`); nan where the log does not tell
        },
        "calls": {
            "macro": Column("int64", refers="macro"),
            "first": Column("int64", refers="micro"),  # its threads are rows first .. first + threads of micro
            "threads": Column("int16"),
            "seq": Column("int32"),
            "buying": Column("int16"),  # threads in which the agent buys
        },
        "micro": {
            "macro": Column("int64", refers="macro"),
            "call": Column("int64", refers="calls"),
            "history": Column("int64", refers="offers"),
            "history_length": Column("int16"),
            "negotiation": Column("int32"),  # its number in the log
            "seq": Column("int32"),
            "round": Column("int16"),
            "relative_time": Column("float32"),
            "role": Column("int8"),  # 0 buyer, 1 seller
            "op": Column("int8"),  # 0 accept, 1 reject with an own offer, 2 end
            "baseline": Column("float32", (3,)),  # quantity, price, delta
            "residual": Column("float32", (2,)),  # expert minus baseline: quantity, price
            "time_label": Column("int16"),
            "time_shift": Column("int16"),  # days between the expert's delta and the label
            "time_valid": Column("bool"),
            "time_open": Column("bool", (slots,)),  # True where the time mask is 0
            "aux": Column("float32", (7,)),
            "thread": Column("float32", (24,)),
            "thread_day": Column("int16"),  # delta of the latest offer, else of the baseline
            "signed": Column("float32"),  # units signed today on this side in the bucket of thread_day, so far
            "alpha": Column("float32"),  # the heuristic coordinator's weight of this thread
            "source": Column("int8"),  # of the baseline: 0 recorded, 1 computed
            "partner": Column("float32", (sizes.partner,)),
            "acceptable": Column("bool"),  # there is an offer on the table, and L1 allows to accept it
            "breaks_caps": Column("bool"),  # the expert's own action is more than L1 allows
            "masked": Column("bool"),  # L1 allowed no day at all
            "outcome": Column("int8"),  # how the negotiation ended
        },
        "offers": {"row": Column("float32", (4,))},
    }


class LogInfo(NamedTuple):
    """Where a log came from."""

    world: str
    agent: str
    agent_type: str
    full_type: str
    path: str


@dataclass(frozen=True)
class Samples:
    """Tables of samples; arrays may be in memory or mapped from disk."""

    sizes: Sizes
    logs: Sequence[LogInfo]
    tables: Mapping[str, Columns]

    @property
    def macro(self) -> Columns:
        return self.tables["macro"]

    @property
    def micro(self) -> Columns:
        return self.tables["micro"]

    @property
    def calls(self) -> Columns:
        return self.tables["calls"]

    def rows(self, table: str) -> int:
        """Number of rows of a table."""
        return len(self.logs) if table == "logs" else len(next(iter(self.tables[table].values())))

    def goals(self) -> NDArray[np.float32]:
        """[micro, 16] the goal of each decision's day."""
        return self.macro["goal"][self.micro["macro"]]

    def histories(self, rows: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[n, 20, 4] offers before some decisions, latest last, and [n, 20] where they are (the rest is padding)."""
        back = np.arange(HISTORY, 0, -1)
        length = self.micro["history_length"][rows, None]
        there = back <= length
        at = np.where(there, self.micro["history"][rows, None] + length - back, 0)
        offers = self.tables["offers"]["row"]
        history = offers[at] if len(offers) else np.zeros((*at.shape, 4), np.float32)
        return np.where(there[..., None], history, np.float32(0)), there


def empty(sizes: Sizes) -> Samples:
    """No rows."""
    tables = {
        table: {name: np.zeros((0, *column.cell), column.kind) for name, column in columns.items()}
        for table, columns in schema(sizes).items()
    }
    return Samples(sizes, [], tables)


def concatenate(parts: Sequence[Samples]) -> Samples:
    """One set of tables from several of the same sizes; row numbers are shifted."""
    if len(parts) == 1:
        return parts[0]
    sizes = parts[0].sizes
    if any(part.sizes != sizes for part in parts):
        raise ValueError(f"samples of different sizes: {sorted({part.sizes for part in parts})}")
    columns = schema(sizes)
    starts = {table: np.cumsum([0, *(part.rows(table) for part in parts)]) for table in (*columns, "logs")}
    tables: dict[str, Columns] = {}
    for table, kinds in columns.items():
        tables[table] = {}
        for name, column in kinds.items():
            values = [part.tables[table][name] for part in parts]
            if column.refers:
                values = [value + start for value, start in zip(values, starts[column.refers])]
            tables[table][name] = np.concatenate(values)
    return Samples(sizes, [log for part in parts for log in part.logs], tables)


# --- on disk ------------------------------------------------------------------------------------------------------


class _Appender:
    """A `.npy` file that grows: numpy leaves room in the header for a longer first axis. It is open only in use."""

    def __init__(self, path: Path, column: Column) -> None:
        self.path, self.column, self.rows = path, column, 0
        path.write_bytes(b"")
        self.close()

    def append(self, values: NDArray[Any]) -> None:
        if values.dtype != np.dtype(self.column.kind) or values.shape[1:] != self.column.cell:
            raise ValueError(f"{self.path.name} takes {self.column}, got {values.dtype} {values.shape}")
        append(self.path, np.ascontiguousarray(values).tobytes())
        self.rows += len(values)

    def close(self) -> None:
        """Write the number of rows into the header."""
        kind = npy.dtype_to_descr(np.dtype(self.column.kind))
        shape = (self.rows, *self.column.cell)
        with self.path.open("r+b") as file:
            npy.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})


class SplitWriter:
    """Writes the columns of one split, part by part; memory does not grow with the number of parts."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.logs: list[LogInfo] = []
        self.sizes = sizes
        self._columns = schema(sizes)
        self._files = {
            (table, name): _Appender(folder / f"{table}.{name}.npy", column)
            for table, columns in self._columns.items()
            for name, column in columns.items()
        }

    def append(self, samples: Samples) -> None:
        """Add a part; its row numbers are shifted to continue what is there."""
        starts = {table: self._files[table, next(iter(columns))].rows for table, columns in self._columns.items()}
        starts["logs"] = len(self.logs)
        for (table, name), file in self._files.items():
            values = samples.tables[table][name]
            refers = self._columns[table][name].refers
            file.append(values + starts[refers] if refers else values)
        self.logs += samples.logs

    def close(self) -> None:
        """Complete the files; the dataset is still without its `dataset.json`."""
        for file in self._files.values():
            file.close()


def finish(folder: Path, writers: Mapping[str, SplitWriter], options: Mapping[str, Any]) -> None:
    """Close the splits of a dataset and write what describes it, last of all: a folder without it is not one."""
    for writer in writers.values():
        writer.close()
    sizes = next(iter(writers.values())).sizes
    logs = [(*log, split) for split, writer in writers.items() for log in writer.logs]
    table = pa.table(
        {name: pa.array([log[i] for log in logs], pa.string()) for i, name in enumerate((*LogInfo._fields, "split"))}
    )
    about = {"schema": SCHEMA, "sizes": sizes._asdict(), "options": dict(options)}
    with replacing(folder / "logs.parquet") as temporary:
        pq.write_table(table.replace_schema_metadata({"marlab": json.dumps(about)}), temporary)
    write_json(folder / FILE, {**about, "splits": {name: len(writer.logs) for name, writer in writers.items()}})


@dataclass(frozen=True)
class Dataset:
    """An opened dataset folder."""

    folder: Path
    sizes: Sizes
    options: dict[str, Any]  # of the features, L1, the expert and the goals
    splits: tuple[str, ...]

    def split(self, name: str) -> Samples:
        """The samples of train, val or test, mapped from disk."""
        if name not in self.splits:
            raise UserError(f"{self.folder} has no split '{name}', only {', '.join(self.splits)}.")
        logs = _read_logs(self.folder / "logs.parquet", name)
        columns = schema(self.sizes)
        tables = {
            table: {
                column: _mapped(self.folder / name / f"{table}.{column}.npy", kind) for column, kind in kinds.items()
            }
            for table, kinds in columns.items()
        }
        integrity.check_tables(self.folder / name, tables, columns, len(logs), self.sizes.horizon)
        return Samples(self.sizes, logs, tables)


def open_dataset(folder: Path) -> Dataset:
    """Open a dataset folder (or a run directory with one in `data/`); anything else is a UserError."""
    if not (folder / FILE).exists() and (folder / "data" / FILE).exists():
        folder = folder / "data"
    missing = f"{folder} is not a finished set of samples, as `marlab market samples` makes them"
    about = read_json(folder / FILE, lambda why: UserError(f"{missing}: {why}."))
    sizes, options, splits = integrity.check_about(folder / FILE, about, SCHEMA)
    return Dataset(folder, sizes, options, tuple(splits))


def _read_logs(path: Path, split: str) -> list[LogInfo]:
    with trusting(f"The samples are damaged, {path} cannot be read"):
        rows = read_parquet(path).to_pylist()
        return [LogInfo(*(str(row[field]) for field in LogInfo._fields)) for row in rows if row["split"] == split]


def _mapped(path: Path, column: Column) -> NDArray[Any]:
    try:
        values = map_npy(path)
    except (OSError, ValueError) as error:
        raise UserError(f"The samples are damaged, {path} cannot be opened: {first_line(error)}.") from None
    if values.dtype != np.dtype(column.kind) or values.ndim == 0 or values.shape[1:] != column.cell:
        raise UserError(f"The samples are damaged, {path} holds {values.dtype} {values.shape}, expected {column}.")
    return values


def save_part(path: Path, parts: Iterable[Samples]) -> None:
    """A few logs in one file, as a worker leaves them: an uncompressed `.npz`."""
    samples = concatenate(list(parts))
    arrays = {
        f"{table}.{name}": values for table, columns in samples.tables.items() for name, values in columns.items()
    }
    about = {"schema": SCHEMA, "sizes": samples.sizes._asdict(), "logs": [list(log) for log in samples.logs]}
    with replacing(path) as temporary, temporary.open("wb") as file:
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        np.savez(file, allow_pickle=False, **arrays)


def load_part(path: Path) -> Samples:
    """What `save_part` wrote."""
    stored = read_npz(path, "a part of a set of samples")
    with trusting(f"{path} is not a part of a set of samples"):
        about = json.loads(stored["about"].tobytes())
        sizes = Sizes(**about["sizes"])
        tables = {t: {name: stored[f"{t}.{name}"] for name in columns} for t, columns in schema(sizes).items()}
        return Samples(sizes, [LogInfo(*log) for log in about["logs"]], tables)
