"""For tests of samples: a small recorded world, and the plain way to compute what an agent knew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marlab.market.logs.daystate import DayState
from marlab.market.logs.worldfile import read_world
from marlab.market.logs.worldlog import NONE, REJECT, TABLES, AgentLog, WorldLog
from marlab.market.rules.offers import OfferBook, Offers
from marlab.market.samples.dataset import Samples, SplitWriter, finish

TINY = Path(__file__).parents[1] / "golden" / "market" / "tiny_world.parquet"
"""Seven factories on three levels, 14 days; six of them tracked, three of those PenguinAgents."""


@cache
def tiny_world() -> WorldLog:
    return read_world(TINY)


def tracked_logs() -> list[AgentLog]:
    return list(tiny_world().tracked())


class Moment(NamedTuple):
    """One decision as a person would look it up in the log."""

    row: int  # of the decisions table
    day_row: int
    selling: bool
    state: DayState  # the morning with the deals signed before
    signed: np.ndarray  # [H+1] units signed today on this side before
    history: list[tuple[float, float, float, bool]]  # quantity, price, delivery, mine
    offers: Offers  # known before the call


def moments(log: AgentLog) -> list[Moment]:
    """Walk through a log decision by decision, with dictionaries and loops instead of sums over segments."""
    table = log.decisions
    calls: dict[tuple[int, int], list[int]] = {}
    for row in range(len(table["seq"])):
        day = int(log.negotiations["day"][table["negotiation"][row]])
        calls.setdefault((day, int(table["call"][row])), []).append(row)
    book, made = OfferBook(), []
    histories: dict[int, list[tuple[float, float, float, bool]]] = {}
    last_day = -1
    for (day, _), rows in calls.items():
        while last_day < day:
            book.new_day()
            last_day += 1
        seq = min(int(table["seq"][row]) for row in rows)
        for row in rows:
            if table["received_quantity"][row] != NONE:
                _note(log, book, histories, row, "received_", mine=False)
        today = book.known(day)
        made += [
            _moment(log, row, day, seq, list(histories.get(int(table["negotiation"][row]), [])), today) for row in rows
        ]
        for row in rows:
            if table["op"][row] == REJECT:
                _note(log, book, histories, row, "", mine=True)
    return made


def _note(log: AgentLog, book: OfferBook, histories: dict, row: int, prefix: str, mine: bool) -> None:
    quantity, day, price = (float(log.decisions[prefix + name][row]) for name in ("quantity", "day", "price"))
    number = int(log.decisions["negotiation"][row])
    histories.setdefault(number, []).append((quantity, price, day, mine))
    selling = int(log.negotiations["seller"][number] == log.index)
    book.add(selling, day, quantity, price, float(log.decisions["round"][row]))


def _moment(log: AgentLog, row: int, day: int, seq: int, history: list, offers: Offers) -> Moment:
    number = int(log.decisions["negotiation"][row])
    selling = bool(log.negotiations["seller"][number] == log.index)
    day_row = int(np.flatnonzero(log.days.day == day)[0])
    signed = np.zeros((4, log.days.horizon + 1))
    contracts = log.contracts
    for i in range(len(contracts["seq"])):
        if contracts["negotiation"][i] == NONE or contracts["day"][i] != day or contracts["seq"][i] > seq:
            continue
        slot = int(contracts["delivery"][i]) - day
        side = 2 if contracts["seller"][i] == log.index else 0
        signed[side, slot] += contracts["quantity"][i]
        signed[side + 1, slot] += contracts["quantity"][i] * contracts["price"][i]
    state = log.days.take(day_row).with_signed(*signed)
    return Moment(row, day_row, selling, state, signed[2 if selling else 0], history, offers)


def cut_after(log: AgentLog, seq: int, day: int) -> AgentLog:
    """The log as it would be if the world had stopped right after event `seq` of `day`."""
    decisions = {name: values[log.decisions["seq"] <= seq] for name, values in log.decisions.items()}
    contracts = {name: values[log.contracts["seq"] <= seq] for name, values in log.contracts.items()}
    return replace(log, days=log.days.take(log.days.day <= day), decisions=decisions, contracts=contracts)


def records_equal(a: Any, b: Any) -> bool:
    """Whether two records hold the same values; nan equals nan."""
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.name != "origin"]
    return all(x == y if isinstance(x, (str, list)) else np.array_equal(x, y, equal_nan=True) for x, y in pairs)


def empty_table(name: str) -> dict[str, Any]:
    """No rows, the right columns."""
    return {column: np.zeros(0, dtype=kind) for column, kind in TABLES[name].items()}


def write_dataset(folder: Path, splits: Mapping[str, Samples], options: Mapping[str, Any]) -> None:
    """A dataset from samples in memory."""
    writers = {}
    for name, samples in splits.items():
        writers[name] = SplitWriter(folder / name, samples.sizes)
        writers[name].append(samples)
    finish(folder, writers, options)
