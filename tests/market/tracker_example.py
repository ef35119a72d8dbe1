"""A small log made by hand: a middle factory, two days, five negotiations of which four are its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from marlab.market.logs.daystate import HORIZON, SCALARS, DayState, from_mapping, stack
from marlab.market.logs.tracker import read_tracker, write_tracker
from marlab.market.logs.worldlog import ACCEPT, AGREED, BROKEN, END, NONE, REJECT, TABLES, TIMED_OUT, AgentLog, Table

NAMES = ["00Su@0", "01Pe@1", "02Co@2", "03Su@0"]
ME = 1


def morning(day: int, **changes: float) -> DayState:
    """A morning with a different number in every field, so that no two can be confused."""
    values: dict[str, Any] = {name: 0.25 + i for i, name in enumerate(SCALARS)}
    values |= {"day": day, "n_steps": 50, "n_lines": 10, "n_products": 4, "input_product": 1, "output_product": 2}
    values |= {"balance": 9000.5 - 100 * day, "initial_balance": 9000.5, "needed_supplies": -3, "league_horizon": 10}
    values |= {"buy_day_min": day, "buy_day_max": day + 10, "sell_day_min": day, "sell_day_max": day + 10}
    schedules = np.zeros((4, HORIZON + 1))
    schedules[:, 0] = [8, 6, 80.1, 150]
    schedules[:, 3] = [5, 0, 55.7, 0]
    values |= dict(zip(("q_in", "q_out", "pay", "receive"), schedules))
    values["exogenous_reach"] = np.arange(10)[::-1]
    return from_mapping(values | changes)


def table(name: str, *rows: tuple[float, ...]) -> Table:
    """Columns in the order of TABLES from rows."""
    columns = list(zip(*rows)) if rows else [() for _ in TABLES[name]]
    return {column: np.array(v, dtype=kind) for (column, kind), v in zip(TABLES[name].items(), columns, strict=True)}


def example_log(world_id: str = "world/1", days: tuple[int, ...] = (0, 1)) -> AgentLog:
    """Bought 4 units on day 0, ended one negotiation, was left in another, and sold 7 on day 1."""
    no = (NONE, NONE, NONE)
    negotiations = table(
        "negotiations",
        (0, 0, 1, 1, 0, 1, 30, 0, 10, 9, 11, AGREED, NONE, 2),
        (0, 0, 3, 1, 3, 1, 30, 0, 10, 9, 11, TIMED_OUT, NONE, 20),  # of others
        (0, 3, 1, 1, 3, 1, 30, 0, 10, 9, 11, BROKEN, ME, 1),
        (0, 1, 2, 2, 2, 1, 30, 0, 10, 18, 22, BROKEN, 2, 3),
        (1, 1, 2, 2, 2, 1, 30, 1, 11, 18, 23, AGREED, NONE, 5),
    )
    decisions = table(
        "decisions",
        (3, ME, 0, 0, 0, 1 / 21, *no, REJECT, 5, 0, 9),
        (3, ME, 0, 2, 0, 1 / 21, *no, REJECT, 5, 1, 9),
        (5, ME, 1, 3, 0, 1 / 21, 6, 2, 19, REJECT, 6, 2, 22),
        (8, ME, 2, 0, 1, 2 / 21, 4, 2, 10, ACCEPT, 4, 2, 10),
        (8, ME, 2, 2, 1, 2 / 21, 30, 1, 11, END, *no),
        (20, ME, 3, 4, 0, 1 / 21, 7, 1, 20, ACCEPT, 7, 1, 20),
    )
    contracts = table(
        "contracts",
        (1, NONE, 0, NONE, ME, 1, 3, 0, 10),
        (10, 0, 0, 0, ME, 1, 4, 2, 10),
        (21, 4, 1, ME, 2, 2, 7, 1, 20),
    )
    prices = table("prices", *[(d, p, 10.5 * (p + 1) + d) for d in days for p in range(4)])
    return AgentLog(
        world_id=world_id,
        agent_id=NAMES[ME],
        agent_type="PenguinAgent",
        full_type="scml_agents.scml2024.standard.team_penguin.penguin.PenguinAgent",
        index=ME,
        names=NAMES,
        days=stack([morning(d) for d in days]),
        negotiations=negotiations,
        decisions=decisions,
        contracts=contracts,
        prices=prices,
        reports=table("reports", (0, 0, 1234.5, 0), (0, 2, -3.0, 1)),
        final_balance=8123.25,
    )


Document = dict[str, Any]


def own(log: AgentLog) -> AgentLog:
    """The log with only its own negotiations, numbered anew: all that a tracker file can hold."""
    n = log.negotiations
    mine = np.flatnonzero((n["seller"] == log.index) | (n["buyer"] == log.index))
    number = {int(i): k for k, i in enumerate(mine)} | {NONE: NONE}
    renumber = lambda t: t | {"negotiation": np.array([number[int(i)] for i in t["negotiation"]])}  # noqa: E731
    return replace(
        log,
        negotiations={name: values[mine] for name, values in n.items()},
        decisions=renumber(log.decisions),
        contracts=renumber(log.contracts),
    )


def document(log: AgentLog, folder: Path) -> Document:
    return json.loads(write_tracker(log, folder).read_text())


def events(doc: Document, *names: str) -> list[Document]:
    return [entry for entry in doc["entries"] if entry["event"] in names]


def reread(changed: Document, folder: Path, name: str = "agent_x.json") -> AgentLog:
    path = folder / name
    path.write_text(json.dumps(changed))
    return read_tracker(path)


def without(doc: Document, *names: str) -> Document:
    return doc | {"entries": [entry for entry in doc["entries"] if entry["event"] not in names]}
