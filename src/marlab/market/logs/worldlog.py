"""Logs of played worlds, of a whole world and of one agent in it.

Tables and their columns are in `TABLES`; agents and negotiations are named by their index. Events are ordered by `seq`,
one counter per world. `worldfile` keeps a world on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import HORIZON, SCALARS, SCHEDULES, DayState, fit_schedule

Table = dict[str, NDArray[Any]]
"""Columns of equal length by name."""

ACCEPT, REJECT, END = range(3)
"""What an agent does in one negotiation at one decision; REJECT carries an own offer."""
AGREED, BROKEN, TIMED_OUT = range(3)
"""How a negotiation ended."""
NONE = -1
"""No offer, no agent, no negotiation."""
EVERYBODY = "all"
"""In place of an agent's name: every agent whose decisions were recorded."""

EXOGENOUS = ("supply_units", "supply_price", "demand_units", "demand_price")
"""Columns of the evenings: what the market delivers to a factory and takes from it on a day, prices per unit."""
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
        "negotiation": "int32", "round": "int16", "relative_time": "float64",
        **dict.fromkeys(("by", "quantity", "day"), "int16"), "price": "int32",
    },
    # one row per own decision of a tracked agent: the offer on the table (or -1) and the answer.
    # `call` counts the agent's joint decisions: rows with the same (agent, call) were decided together.
    "decisions": {
        "seq": "int32", "agent": "int16", "call": "int32", "negotiation": "int32",
        "round": "int16", "relative_time": "float64",
        "received_quantity": "int16", "received_day": "int16", "received_price": "int32",
        "op": "int8", "quantity": "int16", "day": "int16", "price": "int32",
    },
    # signed contracts; exogenous ones have negotiation -1 and seller or buyer -1
    "contracts": {
        "seq": "int32", "negotiation": "int32",
        **dict.fromkeys(("day", "seller", "buyer", "product", "quantity", "delivery"), "int16"),
        "price": "int32",
    },
    # trading prices at the start of a day
    "prices": {"day": "int16", "product": "int16", "price": "float64"},
    # what the market gave to every factory
    "factories": {"agent": "int16", "lines": "int16", "cost": "int32", "balance": "float64"},
    # one row per day and factory, day by day: rates and exogenous contracts of the day, balance and stock after it
    "evenings": {
        "day": "int16", "agent": "int16", "storage": "float64", "shortfall": "float64",
        **dict.fromkeys(EXOGENOUS, "int32"), "balance": "float64", "stock": "int32",
    },
    # public financial reports, every few days
    "reports": {"day": "int16", "agent": "int16", "cash": "float64", "bankrupt": "int8"},
}  # fmt: skip


@dataclass(frozen=True)
class WorldLog:
    """A recorded world. docs/reference/market-files.md lists the keys of `meta`; `agents` is a list in it."""

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
        about = self.agents[index]
        decisions, contracts = self.tables["decisions"], self.tables["contracts"]
        mine_signed = (contracts["seller"] == index) | (contracts["buyer"] == index)
        return AgentLog(
            self.meta["world_id"], about["id"], about["type"], about["full_type"], index,
            [agent["id"] for agent in self.agents], days, negotiations=self.tables["negotiations"],
            decisions=_rows(decisions, decisions["agent"] == index), contracts=_rows(contracts, mine_signed),
            prices=self.tables["prices"], reports=self.tables["reports"],
            final_balance=float(about.get("final_balance", np.nan)),
        )  # fmt: skip

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


def _rows(table: Table, rows: NDArray[np.bool_]) -> Table:
    return {name: values[rows] for name, values in table.items()}
