"""Tracker logs: one JSON file per agent and world, the format in which expert games are exchanged.

`write_tracker` exports a recorded agent, `read_tracker` reads such files, ours and those of other trackers, into the
same `AgentLog`. Events stand in the order in which they happened; that order, not a clock, is their time.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.runs.files import replacing
from marlab.market.logs.tracker_days import SCHEMA_VERSION, daily_status
from marlab.market.logs.tracker_read import read_tracker
from marlab.market.logs.tracker_words import OPERATORS, RANGES, SYSTEM_BUYER, SYSTEM_SELLER, plain
from marlab.market.logs.worldlog import ACCEPT, BROKEN, END, NONE, REJECT, TIMED_OUT, AgentLog

__all__ = ["FOLDER", "file_name", "find_trackers", "read_tracker", "write_tracker"]

FOLDER = "tracker_logs"
RESPONSES = {ACCEPT: "ACCEPT_OFFER", REJECT: "REJECT_OFFER", END: "END_NEGOTIATION"}
Event = tuple[str, str, dict[str, Any]]
"""category, event, data"""


def file_name(agent_id: str, world_id: str) -> str:
    """agent_<id>_world_<first 40 characters of the world>_<12 digits of its hash>.json"""
    agent = agent_id.replace("@", "_at_").replace("/", "_")
    world = world_id.replace("/", "_").replace("\\", "_")[:40]
    return f"agent_{agent}_world_{world}_{hashlib.sha1(world_id.encode()).hexdigest()[:12]}.json"


def find_trackers(folder: Path) -> list[Path]:
    """Tracker files in `folder` itself and in every `tracker_logs` below it, sorted; each is a unit of its own."""
    files = {*folder.glob("agent_*.json*"), *folder.glob(f"**/{FOLDER}/agent_*.json*")}
    return sorted(path for path in files if path.name.endswith((".json", ".json.gz")))


def write_tracker(log: AgentLog, folder: Path, *, compressed: bool = False) -> Path:
    """Write the agent's file into `folder` and return its path; `compressed` adds `.gz`."""
    path = folder / (file_name(log.agent_id, log.world_id) + (".gz" if compressed else ""))
    text = json.dumps(_document(log), ensure_ascii=False).encode()
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(text, mtime=0) if compressed else text)
    return path


def _document(log: AgentLog) -> dict[str, Any]:
    constants = {"agent_id": log.agent_id, "agent_type": log.agent_type, "world_id": log.world_id}
    entries = [
        {"timestamp": seq, **constants, "day": day, "category": category, "event": event, "data": data}
        for seq, (day, (category, event, data)) in enumerate(_Writer(log).events())
    ]
    days = [int(d) for d in log.days.day]
    series = {
        "raw_material": log.days.inventory_input,
        "product": log.days.inventory_output,
        "balance": log.days.balance,
    }
    return constants | {
        "stats": _stats(entries, log.final_balance),
        "time_series": {name: [[d, plain(v)] for d, v in zip(days, values)] for name, values in series.items()},
        "entries": entries,
    }


def _stats(entries: list[dict[str, Any]], final_balance: float) -> dict[str, Any]:
    def count(category: str, event: str) -> int:
        return sum(entry["category"] == category and entry["event"] == event for entry in entries)

    return {
        "negotiations_started": count("negotiation", "started"),
        "negotiations_success": count("negotiation", "success"),
        "negotiations_failed": count("negotiation", "failure"),
        "contracts_signed": count("contract", "signed"),
        "offers_made": count("negotiation", "offer_made"),
        "offers_accepted": count("negotiation", "accept"),
        "offers_rejected": count("negotiation", "reject"),
        "final_balance": plain(final_balance) if np.isfinite(final_balance) else None,
    }


class _Writer:
    """The events of one agent, day by day."""

    def __init__(self, log: AgentLog) -> None:
        self.log = log
        n = log.negotiations
        self.mine = np.flatnonzero((n["seller"] == log.index) | (n["buyer"] == log.index))
        self.day_of = {int(i): int(n["day"][i]) for i in self.mine}

    def events(self) -> Iterator[tuple[int, Event]]:
        """(day, event) in order: the morning, the day's negotiations, what happened in them, how they failed."""
        log = self.log
        yield 0, self._initialized()
        rows = {int(day): row for row, day in enumerate(log.days.day)}
        contract_days = (int(d) for d in log.contracts["day"])
        for day in sorted({*rows, *self.day_of.values(), *contract_days, *(int(d) for d in log.reports["day"])}):
            if day in rows:
                status = daily_status(log.days, rows[day], self._trading_prices(day))
                yield day, ("custom", "daily_status", status)
                stock = {"raw_material": status["inventory_input"], "product": status["inventory_output"]}
                yield day, ("inventory", "state", {**stock, "balance": status["balance"]})
            negotiations = [i for i in self.mine if self.day_of[int(i)] == day]
            for i in negotiations:
                yield day, ("negotiation", "started", self._started(int(i)))
            for event in self._happenings(day):
                yield day, event
            for i in negotiations:
                if log.negotiations["outcome"][i] in (BROKEN, TIMED_OUT):
                    yield day, ("negotiation", "failure", self._failure(int(i)))
            for row in np.flatnonzero(log.reports["day"] == day):
                yield day, ("custom", "financial_report", self._report(int(row)))

    def _initialized(self) -> Event:
        log = self.log
        first = log.days.take(0)
        data = {
            "schema_version": SCHEMA_VERSION,
            "league": "std",
            "n_steps": plain(first.n_steps),
            "n_lines": plain(first.n_lines),
            "level": plain(first.input_product),
            **dict.fromkeys(("agent_type_raw", "agent_type_base"), log.agent_type),
            **dict.fromkeys(("agent_type_raw_full", "agent_type_base_full"), log.full_type),
            "agent_display_name": log.agent_id,
            "agents": log.names,
        }
        return "custom", "agent_initialized", data

    def _happenings(self, day: int) -> Iterator[Event]:
        """Decisions and signatures of a day in the order of `seq`."""
        d, c = self.log.decisions, self.log.contracts
        days = self.log.negotiations["day"][d["negotiation"]]
        decided = [(int(d["seq"][r]), 1, r) for r in np.flatnonzero(days == day)]
        signed = [(int(c["seq"][r]), 0, r) for r in np.flatnonzero(c["day"] == day)]
        for _, kind, row in sorted(decided + signed):
            yield from self._decision(int(row)) if kind else self._signature(int(row))

    def _decision(self, row: int) -> Iterator[Event]:
        d = {name: values[row] for name, values in self.log.decisions.items()}
        op, round_ = int(d["op"]), int(d["round"])
        who = self._parties(int(d["negotiation"]))
        received = _offer(d, "received_", round_) if d["received_quantity"] != NONE else None
        own = _offer(d, "", round_) if op == REJECT else None
        if received:
            yield "negotiation", "offer_received", {**who, "offer": received}
        if own:
            reason = "counter_offer" if received else "first_proposal"
            yield "negotiation", "offer_made", {**who, "offer": own, "reason": reason}
        elif received:
            event = "accept" if op == ACCEPT else "reject"
            yield "negotiation", event, {**who, "offer": received, "reason": RESPONSES[op].lower()}
        data = {
            "sim_step": self.day_of[int(d["negotiation"])], **who, "round": round_,
            "relative_time": plain(d["relative_time"]), "action_op": OPERATORS[op], "response_type": RESPONSES[op],
            "offer": received if op == ACCEPT else own, "received": received,
            "reason": "counter_all" if received else "first_proposal", "call": int(d["call"]),
        }  # fmt: skip
        yield "custom", "aop_action", data

    def _signature(self, row: int) -> Iterator[Event]:
        c = {name: int(values[row]) for name, values in self.log.contracts.items()}
        seller, buyer = self._name(c["seller"], SYSTEM_SELLER), self._name(c["buyer"], SYSTEM_BUYER)
        selling = c["seller"] == self.log.index
        who = {"partner": buyer if selling else seller, "role": "seller" if selling else "buyer"}
        who |= {"buyer": buyer, "seller": seller}
        who["mechanism_id"] = None if c["negotiation"] == NONE else _mechanism(c["negotiation"])
        terms = {"quantity": c["quantity"], "price": c["price"], "delivery_day": c["delivery"]}
        yield "contract", "signed", {"contract_id": f"c{c['seq']}", **who, **terms, "product": c["product"]}
        if c["negotiation"] != NONE:
            agreement = {"quantity": c["quantity"], "price": c["price"], "time": c["delivery"]}
            data = {**self._parties(c["negotiation"]), "agreement": agreement | {"buyer": buyer, "seller": seller}}
            yield "negotiation", "success", {**data, "rounds": int(self._of(c["negotiation"])["rounds"])}

    def _started(self, i: int) -> dict[str, Any]:
        n = {name: int(value) for name, value in self._of(i).items()}
        ranges = {key: [n[f"{name}_min"], n[f"{name}_max"]] for key, name in RANGES.items()}
        prices = {"min_price": n["price_min"], "max_price": n["price_max"]}
        return {**self._parties(i), **prices, **ranges, "product": n["product"], "caller": self._name(n["caller"])}

    def _failure(self, i: int) -> dict[str, Any]:
        n = self._of(i)
        reason = "timedout" if n["outcome"] == TIMED_OUT else "broken"
        ended_by = self._name(int(n["ended_by"]))
        return {**self._parties(i), "reason": reason, "ended_by": ended_by, "rounds": int(n["rounds"])}

    def _report(self, row: int) -> dict[str, Any]:
        r = self.log.reports
        about = self._name(int(r["agent"][row]))
        return {"agent": about, "cash": plain(r["cash"][row]), "bankrupt": int(r["bankrupt"][row])}

    def _parties(self, i: int) -> dict[str, Any]:
        n = self._of(i)
        seller, buyer = self._name(int(n["seller"])), self._name(int(n["buyer"]))
        selling = n["seller"] == self.log.index
        partner = buyer if selling else seller
        role = "seller" if selling else "buyer"
        ids = {"mechanism_id": _mechanism(i), "negotiator_id": partner}
        return {"partner": partner, "role": role, "buyer": buyer, "seller": seller, **ids}

    def _of(self, i: int) -> dict[str, Any]:
        return {name: values[i] for name, values in self.log.negotiations.items()}

    def _name(self, index: int, nobody: str | None = None) -> str | None:
        return nobody if index == NONE else self.log.names[index]

    def _trading_prices(self, day: int) -> list[float]:
        p = self.log.prices
        rows = np.flatnonzero(p["day"] == day)
        return [plain(p["price"][r]) for r in rows[np.argsort(p["product"][rows], kind="stable")]]


def _mechanism(negotiation: int) -> str:
    return f"n{negotiation}"


def _offer(decision: dict[str, Any], prefix: str, round_: int) -> dict[str, int]:
    names = {"quantity": "quantity", "delivery_day": "day", "unit_price": "price"}
    return {**{key: int(decision[prefix + name]) for key, name in names.items()}, "round": round_}
