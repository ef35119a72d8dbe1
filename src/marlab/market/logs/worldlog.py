"""Logs of played worlds: one Parquet file per world, one row, every column of every table a list.

Arrow keeps a list column as flat values and offsets, so a world reads into numpy without a loop, files of many worlds
can be concatenated, and a whole world is still one file that appears by one rename. Tables and their columns are in
`TABLES`; agents and negotiations are named by their index. Events are ordered by `seq`, one counter per world.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.files import replacing
from marlab.market.logs.daystate import HORIZON, LINES, SCALARS, SCHEDULES, DayState, fit_schedule

SCHEMA = 1
Table = dict[str, NDArray[Any]]
"""Columns of equal length by name."""

ACCEPT, REJECT, END = range(3)
"""What an agent does in one negotiation at one decision; REJECT carries an own offer."""
AGREED, BROKEN, TIMED_OUT = range(3)
"""How a negotiation ended."""
NONE = -1
"""No offer, no agent, no negotiation."""

TABLES: dict[str, dict[str, str]] = {
    # one row per agent and day: DayState fields follow `agent`; schedules are cut to the league's horizon
    "days": {"agent": "int16", **dict.fromkeys(SCALARS, "float64")},
    # one row per negotiation; day, issue ranges, outcome; `ended_by` is the agent that left a broken one
    "negotiations": {
        **dict.fromkeys(("day", "seller", "buyer", "product", "caller"), "int16"),
        **dict.fromkeys(("quantity_min", "quantity_max", "day_min", "day_max"), "int16"),
        **dict.fromkeys(("price_min", "price_max"), "int32"),
        **dict.fromkeys(("outcome", "ended_by", "rounds"), "int16"),
    },
    # every offer of every negotiation, in order
    "offers": {
        "negotiation": "int32",
        "round": "int16",
        "relative_time": "float64",
        "by": "int16",
        "quantity": "int16",
        "day": "int16",
        "price": "int32",
    },
    # one row per own decision of a tracked agent: the offer on the table (or -1) and the answer.
    # `call` counts the agent's joint decisions: rows with the same (agent, call) were decided together.
    "decisions": {
        "seq": "int32",
        "agent": "int16",
        "call": "int32",
        "negotiation": "int32",
        "round": "int16",
        "relative_time": "float64",
        **dict.fromkeys(("received_quantity", "received_day"), "int16"),
        "received_price": "int32",
        "op": "int8",
        **dict.fromkeys(("quantity", "day"), "int16"),
        "price": "int32",
    },
    # signed contracts; exogenous ones have negotiation -1 and seller or buyer -1
    "contracts": {
        "seq": "int32",
        "negotiation": "int32",
        **dict.fromkeys(("day", "seller", "buyer", "product", "quantity", "delivery"), "int16"),
        "price": "int32",
    },
    # trading prices at the start of a day
    "prices": {"day": "int16", "product": "int16", "price": "float64"},
    # public financial reports, every few days
    "reports": {"day": "int16", "agent": "int16", "cash": "float64", "bankrupt": "int8"},
}

_COUNTING = tuple(
    f"{table}.{column}" for table in TABLES for column in ("seq", "call", "negotiation") if column in TABLES[table]
)
"""Columns that mostly count up: their differences take a quarter of the space."""


@dataclass(frozen=True)
class WorldLog:
    """A recorded world. `meta` says what it was: see `docs/market-data.md` for its keys; `agents` is a list in it."""

    meta: dict[str, Any]
    tables: dict[str, Table]
    schedules: dict[str, NDArray[Any]]  # q_in, q_out, pay, receive: [days rows, league horizon + 1]
    reach: NDArray[Any]  # exogenous_reach: [days rows, 10]

    @property
    def agents(self) -> list[dict[str, Any]]:
        """id, type, full_type, level, tracked, score, ... in the order of the agent indices."""
        return self.meta["agents"]

    def agent(self, index: int, horizon: int = HORIZON) -> AgentLog:
        """The world as one agent saw it."""
        mine = self.tables["days"]["agent"] == index
        scalars = {name: self.tables["days"][name][mine] for name in SCALARS}
        schedules = {name: fit_schedule(self.schedules[name][mine].astype(np.float64), horizon) for name in SCHEDULES}
        reach = self.reach[mine].astype(np.float64)
        days = DayState(**scalars, **schedules, exogenous_reach=reach)
        told = self.agents[index]
        return AgentLog(
            world_id=self.meta["world_id"],
            agent_id=told["id"],
            agent_type=told["type"],
            full_type=told["full_type"],
            index=index,
            names=[agent["id"] for agent in self.agents],
            days=days,
            negotiations=self.tables["negotiations"],
            decisions=_where(self.tables["decisions"], "agent", index),
            contracts=_either(self.tables["contracts"], index),
            prices=self.tables["prices"],
            reports=self.tables["reports"],
            final_balance=float(told.get("final_balance", np.nan)),
        )

    def tracked(self) -> Iterator[AgentLog]:
        """The agents whose decisions were recorded."""
        return (self.agent(i) for i, agent in enumerate(self.agents) if agent["tracked"])


@dataclass(frozen=True)
class AgentLog:
    """One agent in one world: all that samples are made of. Tracker JSON files read into the same record."""

    world_id: str
    agent_id: str
    agent_type: str  # class name
    full_type: str  # with its module
    index: int  # its number in the agent columns
    names: list[str]  # agent ids by number
    days: DayState  # [D], in order of days
    negotiations: Table  # all of the world (or of this agent, in a tracker file)
    decisions: Table  # this agent's, in order of seq
    contracts: Table  # this agent's, in order of seq; exogenous ones included
    prices: Table
    reports: Table
    final_balance: float  # after the last day's settlement; nan if the log does not tell
    missing: dict[str, int] = field(default_factory=dict)  # what the file lacked, and how often; ours lack nothing


def _where(table: Table, column: str, value: int) -> Table:
    rows = table[column] == value
    return {name: values[rows] for name, values in table.items()}


def _either(contracts: Table, index: int) -> Table:
    rows = (contracts["seller"] == index) | (contracts["buyer"] == index)
    return {name: values[rows] for name, values in contracts.items()}


def empty_table(name: str) -> Table:
    """No rows, the right columns."""
    return {column: np.zeros(0, dtype=kind) for column, kind in TABLES[name].items()}


def write_world(path: Path, log: WorldLog) -> None:
    """Write a world to `path` by way of a temporary name; an existing file is replaced."""
    columns: dict[str, pa.Array] = {"meta": pa.array([json.dumps({**log.meta, "schema": SCHEMA}, sort_keys=True)])}
    for name, kinds in TABLES.items():
        for column, kind in kinds.items():
            columns[f"{name}.{column}"] = _one_list(np.asarray(log.tables[name][column]).astype(kind))
    for name in SCHEDULES:
        columns[f"days.{name}"] = _one_list(
            log.schedules[name].astype("float64" if name in ("pay", "receive") else "int16").ravel()
        )
    columns["days.exogenous_reach"] = _one_list(log.reach.astype("int16").ravel())
    table = pa.table(columns)
    packed = {f"{name}.list.element": "DELTA_BINARY_PACKED" for name in _COUNTING}
    plain = [f"{name}.list.element" for name in table.column_names if name != "meta" and name not in _COUNTING]
    with replacing(path) as temporary:
        pq.write_table(
            table,
            temporary,
            compression="zstd",
            compression_level=9,
            write_statistics=False,
            store_schema=False,  # the types survive without it, and a hundred columns make it 14 KB
            use_dictionary=plain,
            column_encoding=packed,
        )


def read_world(path: Path) -> WorldLog:
    """Read a world; a file that is something else raises UserError."""
    try:
        table = pq.read_table(path)
        meta = json.loads(table.column("meta")[0].as_py())
    except (OSError, KeyError, pa.ArrowInvalid, ValueError) as error:
        raise UserError(f"{path} is not a log of a market world: {error}") from None
    if meta.get("schema") != SCHEMA:
        raise UserError(
            f"{path} has log schema {meta.get('schema')}; this version reads schema {SCHEMA}: collect again."
        )
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
