"""Reading tracker files, ours and those of other trackers, into `AgentLog`.

Nothing is executed or guessed in silence: what a file lacks is filled by the rules of docs/coming-from/hrl-xf.md
and counted in `AgentLog.missing`. Times inside a file are positions of entries, so `seq` is an entry's index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.errors import UserError
from marlab.market.logs import tracker_words as words
from marlab.market.logs.daystate import HORIZON, DayState
from marlab.market.logs.tracker_days import ISSUES, Range, Surroundings, read_days
from marlab.market.logs.tracker_words import ROUNDS, Offer, number, terms, whole
from marlab.market.logs.worldlog import ACCEPT, AGREED, BROKEN, END, NONE, REJECT, TABLES, TIMED_OUT, AgentLog, Table

Row = dict[str, Any]
LONGEST_GAME = 10_000
"""Days; those of the league have at most 200."""


def read_tracker(path: Path, horizon: int = HORIZON) -> AgentLog:
    """One agent in one world; a file that is no tracker log of the Standard league raises UserError."""
    document = words.parse(path)
    try:
        reader = _Reader(path, document)
        for seq, entry in enumerate(document["entries"]):
            reader.take(seq, entry)
        return reader.log(horizon)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # numbers that mean nothing together
        told = (str(error).splitlines() or [""])[0][:120]
        raise UserError(f"{path} is not a tracker log: {type(error).__name__}, {told}.") from None


class _Reader:
    """Takes the entries of one file in order and remembers what is open."""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self.path = path
        self.document = document
        self.missing: Counter[str] = Counter()
        self.agent_id = str(document.get("agent_id"))
        entries = [entry for entry in document["entries"] if isinstance(entry, dict)]
        begun = next((entry.get("data") for entry in entries if entry.get("event") == "agent_initialized"), None)
        self.game: Mapping[str, Any] = begun if isinstance(begun, dict) else {}
        agents = self.game.get("agents")
        self.names: list[str] = [str(name) for name in agents] if isinstance(agents, list) else []
        self.me = self._index(self.agent_id)
        self.explicit = any(entry.get("event") == "aop_action" for entry in entries)
        self.roles = words.roles_of(entries)
        self.statuses: dict[int, Mapping[str, Any]] = {}
        self.traded: set[int] = set()  # days on which an offer was seen
        self.negotiations: list[Row] = []
        self.by_mechanism: dict[tuple[int, str], int] = {}
        self.by_partner: dict[tuple[int, str], int] = {}
        self.nameless: set[int] = set()  # negotiations that began without a mechanism id
        self.waiting: dict[int, tuple[int, Offer, Row]] = {}  # negotiation -> (seq, offer, data) not answered yet
        self.decisions: list[Row] = []
        self.last_decision: dict[int, Row] = {}
        self.contracts: list[Row] = []
        self.signed: set[int] = set()
        self.agreed: dict[int, tuple[int, Offer]] = {}
        self.prices: list[Row] = []
        self.reports: list[Row] = []
        words.refuse_oneshot(path, document, self.game)

    # entries

    def take(self, seq: int, entry: Any) -> None:
        """One entry. What it does not know is left alone: other trackers log production and more."""
        if not isinstance(entry, dict) or not isinstance(entry.get("data"), dict):
            return
        day, data = entry.get("day"), entry["data"]
        if not isinstance(day, int) or not 0 <= day < LONGEST_GAME:
            self.missing["day of an entry"] += 1
            return
        category, event = entry.get("category"), entry.get("event")
        if category == "negotiation":
            self._negotiation(seq, day, str(event), data)
        elif category == "contract" and event == "signed":
            self._signed(seq, day, data)
        elif event == "daily_status":
            self._status(day, data)
        elif event == "aop_action":
            self._action(seq, day, data)
        elif event == "financial_report":
            report = {"cash": number(data.get("cash")), "bankrupt": int(bool(data.get("bankrupt")))}
            self.reports.append({"day": day, "agent": self._index(str(data.get("agent"))), **report})

    def _status(self, day: int, data: Mapping[str, Any]) -> None:
        if day in self.traded:  # written in the evening: it holds what was signed during the day
            self.missing["daily_status of the morning"] += 1
            return
        if day in self.statuses:
            return
        self.statuses[day] = data
        prices = words.numbers(data.get("trading_prices"))
        self.missing["trading_prices"] += prices is None
        self.prices += [{"day": day, "product": i, "price": price} for i, price in enumerate(prices or [])]

    def _negotiation(self, seq: int, day: int, event: str, data: Row) -> None:
        i = self._find(day, data, "mechanism_id of an outcome" if event in ("success", "failure") else "mechanism_id")
        if i is None:
            return
        if event == "started":
            self._ranges(i, data)
            return
        if event == "success":
            agreement = terms(data.get("agreement"))
            self.negotiations[i] |= {"outcome": AGREED, "rounds": whole(data.get("rounds"))}
            if agreement:
                self.agreed[i] = (seq, agreement)
            return
        if event == "failure":
            end = {"reason": data.get("reason"), "rounds": whole(data.get("rounds"))}
            ended_by = data.get("ended_by")
            self.negotiations[i] |= end | {"ended_by": self._index(ended_by) if isinstance(ended_by, str) else None}
            return
        self.traded.add(day)
        offer = terms(data.get("offer"))
        if offer is None:
            self.missing["terms of an offer"] += 1
        elif event == "offer_received":
            self.waiting[i] = (seq, offer, data["offer"])
        elif not self.explicit:
            self._implied(seq, i, event, offer, data)

    def _implied(self, seq: int, i: int, event: str, offer: Offer, data: Row) -> None:
        """A decision that no `aop_action` states: an own offer is REJECT, an accept ACCEPT, a bare reject END."""
        before = self.last_decision.get(i)
        if event == "offer_made" and before and before["op"] == END and i not in self.waiting:
            before |= {"op": REJECT, "own": offer}  # the reject and the counter offer were two events of one answer
            return
        op = {"offer_made": REJECT, "accept": ACCEPT, "reject": END}.get(event)
        if op is None:
            return
        self.missing["aop_action"] += 1
        details = {**data["offer"], **data} if isinstance(data["offer"], dict) else data
        self._decide(seq, i, op, offer, details)

    def _action(self, seq: int, day: int, data: Row) -> None:
        i = self._find(day, data)
        op = words.OPERATOR_OF.get(str(data.get("action_op")).upper())
        if i is None or op is None:
            self.missing["operator of an aop_action"] += op is None
            return
        self.traded.add(day)
        offer = terms(data.get("offer"))
        if op == REJECT and offer is None:
            op = END  # a rejection that carries no offer ends a negotiation
        if "received" in data and i not in self.waiting:
            received = terms(data["received"])
            if received:
                self.waiting[i] = (seq, received, data["received"])
        self._decide(seq, i, op, offer, data)

    def _decide(self, seq: int, i: int, op: int, offer: Offer | None, data: Row) -> None:
        waiting = self.waiting.pop(i, None)
        received = waiting[1] if waiting else None
        if op == ACCEPT and received is None:
            self.missing["offer that was accepted"] += offer is None
            received = offer
        round_ = whole(data.get("round"))
        if round_ is None and waiting and isinstance(waiting[2], dict):
            round_ = whole(waiting[2].get("round"))
        if round_ is None:
            self.missing["round"] += 1
            round_ = sum(row["negotiation"] == i for row in self.decisions)
        relative_time = number(data.get("relative_time"))
        if relative_time is None:
            self.missing["relative_time"] += 1
            relative_time = (round_ + 1) / (ROUNDS + 1)
        row = {"seq": seq, "negotiation": i, "round": round_, "relative_time": relative_time, "op": op}
        own = {ACCEPT: received, REJECT: offer, END: None}[op]
        row |= {"received": received, "own": own, "call": whole(data.get("call"))}
        self.decisions.append(row)
        self.last_decision[i] = row

    def _signed(self, seq: int, day: int, data: Row) -> None:
        agreed = terms(data)
        if agreed is None:
            self.missing["terms of a contract"] += 1
            return
        partner = str(data.get("partner") or "")
        exogenous = partner.startswith((words.SYSTEM_SELLER, words.SYSTEM_BUYER))
        i = None if exogenous else self._find(day, data, joined="mechanism_id of a contract")
        if i is None and not exogenous:
            return
        selling = data.get("role") == "seller" if exogenous else self.negotiations[i or 0]["seller"] == self.me
        other = NONE if exogenous else self._index(partner)
        self.contracts.append(self._contract(seq, day, NONE if i is None else i, selling, other, agreed))
        if i is not None:
            self.signed.add(i)

    def _contract(self, seq: int, day: int, i: int, selling: bool, other: int, agreed: Offer) -> Row:
        sides = {"seller": self.me, "buyer": other} if selling else {"seller": other, "buyer": self.me}
        quantity, delivery, price = agreed
        row = {"seq": seq, "negotiation": i, "day": day, **sides, "product": selling}
        return row | {"quantity": quantity, "delivery": delivery, "price": price}

    # negotiations

    def _find(self, day: int, data: Row, joined: str = "mechanism_id") -> int | None:
        """The negotiation an entry belongs to, by mechanism or else by partner and day; a new one if there is none."""
        partner = str(data.get("partner") or data.get("negotiator_id") or "")
        mechanism = data.get("mechanism_id")
        known = self.by_partner.get((day, partner))
        if mechanism is None:
            self.missing[joined] += 1
        else:
            known = self.by_mechanism.get((day, str(mechanism)), known if known in self.nameless else None)
        if known is not None:
            return known
        role = data.get("role") or self.roles.get(partner) or self._only_role()
        if role not in ("buyer", "seller") or not partner:
            self.missing["role"] += 1
            return None
        i = len(self.negotiations)
        other = self._index(partner)
        sides = {"seller": self.me, "buyer": other} if role == "seller" else {"seller": other, "buyer": self.me}
        caller = data.get("caller")
        self.negotiations.append(
            {"day": day, **sides, "caller": self._index(caller) if isinstance(caller, str) else None}
        )
        self.by_partner[(day, partner)] = i
        if mechanism is None:
            self.nameless.add(i)
        else:
            self.by_mechanism[(day, str(mechanism))] = i
        return i

    def _only_role(self) -> str | None:
        """First levels only sell and last ones only buy, if the file says which level this is."""
        level = number(self.game.get("level"))
        prices = next((s.get("trading_prices") for s in self.statuses.values()), None)
        if level == 0:
            return "seller"
        return "buyer" if isinstance(prices, list) and level == len(prices) - 2 else None

    def _ranges(self, i: int, data: Row) -> None:
        for key, name in words.RANGES.items():
            bounds = data.get(key)
            if isinstance(bounds, list) and len(bounds) == 2 and all(number(b) is not None for b in bounds):
                self.negotiations[i] |= {f"{name}_min": bounds[0], f"{name}_max": bounds[1]}
        for key, name in (("min_price", "price_min"), ("max_price", "price_max")):
            if number(data.get(key)) is not None:
                self.negotiations[i].setdefault(name, data[key])

    def _index(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    # the log

    def log(self, horizon: int) -> AgentLog:
        """Everything taken, as tables."""
        if not self.statuses:
            late = " (all follow the first offer of their day)" if self.missing["daily_status of the morning"] else ""
            why = f"has no daily_status of a morning{late}: there is no state to learn from; record it in before_step."
            raise UserError(f"{self.path} {why}")
        self._settle()
        days = read_days(sorted(self.statuses.items()), self._surroundings(), horizon, self.missing)
        first = days.take(0)
        products = {"buyer": int(first.input_product), "seller": int(first.output_product)}
        self._complete(products, days)
        for contract in self.contracts:
            contract["product"] = products["seller" if contract["product"] else "buyer"]
        class_name, full_type = words.class_of(self.document, self.game)
        stats = self.document.get("stats")
        final = number(stats.get("final_balance")) if isinstance(stats, dict) else None
        world_id = words.world_name(self.document.get("world_id"), self.path)
        self.missing["world_id"] += world_id != self.document.get("world_id")
        contracts = sorted(self.contracts, key=lambda row: row["seq"])
        log = AgentLog(
            world_id, self.agent_id, class_name, full_type, self.me, self.names, days,
            negotiations=_table("negotiations", self.negotiations),
            decisions=_table("decisions", self._decision_rows()), contracts=_table("contracts", contracts),
            prices=_table("prices", self.prices), reports=_table("reports", self.reports),
            final_balance=np.nan if final is None else final,
            missing={name: count for name, count in sorted(self.missing.items()) if count},
        )  # fmt: skip
        refuse_same_day_issues(self.path, log)
        return log

    def _settle(self) -> None:
        """Ends that the file only implies: unanswered offers, and deals without a signature."""
        if not self.explicit:
            for i, (seq, _, data) in list(self.waiting.items()):
                self.missing["aop_action"] += 1
                self._decide(seq, i, END, None, data if isinstance(data, dict) else {})
        for i, (seq, agreed) in self.agreed.items():
            if i in self.signed:
                continue
            self.missing["contract of a success"] += 1
            n = self.negotiations[i]
            selling = n["seller"] == self.me
            other = n["buyer"] if selling else n["seller"]
            self.contracts.append(self._contract(seq, n["day"], i, selling, other, agreed))
        known = [row for row in self.decisions if self.negotiations[row["negotiation"]]["day"] in self.statuses]
        self.missing["daily_status of a decision"] += len(self.decisions) - len(known)
        self.decisions = sorted(known, key=lambda row: row["seq"])

    def _surroundings(self) -> Surroundings:
        suppliers = {n["seller"] for n in self.negotiations} - {self.me}
        consumers = {n["buyer"] for n in self.negotiations} - {self.me}
        ranges: dict[tuple[int, str], Range] = {}
        for n in self.negotiations:
            bounds = {name: float(n[name]) for name in n if name.endswith(("_min", "_max"))}
            ranges.setdefault((n["day"], "sell" if n["seller"] == self.me else "buy"), {}).update(bounds)
        return Surroundings(str(self.path), self.game, len(suppliers), len(consumers), ranges)

    def _complete(self, products: dict[str, int], days: DayState) -> None:
        """Fill what negotiations lack: product, issue ranges, caller, rounds and how they ended."""
        above = int(days.n_products[0]) - 2 - products["buyer"]
        calling = above % 2 == 0  # the last level calls, and every second one before it
        rows = {int(day): row for row, day in enumerate(days.day)}
        for i, n in enumerate(self.negotiations):
            selling = n["seller"] == self.me
            partner = n["buyer"] if selling else n["seller"]
            n["product"] = products["seller" if selling else "buyer"]
            if n["caller"] is None:
                self.missing["caller of a negotiation"] += 1
                n["caller"] = self.me if calling else partner
            for name in ISSUES:
                if name not in n and n["day"] in rows:
                    self.missing[f"{name} of a negotiation"] += 1
                    issue = getattr(days, f"{'sell' if selling else 'buy'}_{name}")
                    n[name] = issue[rows[n["day"]]]
            self._ending(i, n, partner)

    def _ending(self, i: int, n: Row, partner: int) -> None:
        """The caller moves first in a round; one that never moved has left, and its partner's answer comes in the next
        round."""
        last = self.last_decision.get(i)
        i_call = n["caller"] == self.me
        if n.get("rounds") is None:
            self.missing["rounds of a negotiation"] += 1
            answered_later = last is not None and last["op"] == REJECT and not i_call
            n["rounds"] = min(last["round"] + 1 + answered_later, ROUNDS) if last else 1
        if n.get("outcome") == AGREED or i in self.signed:
            n |= {"outcome": AGREED, "ended_by": NONE}
            return
        reason = n.pop("reason", None)
        i_left = last["op"] == END if last else i_call
        if isinstance(reason, str) and reason.startswith(("timed", "timeout")):
            n["outcome"] = TIMED_OUT
        elif reason == "broken":
            n["outcome"] = BROKEN
        else:
            self.missing["outcome of a negotiation"] += 1
            n["outcome"] = TIMED_OUT if n["rounds"] >= ROUNDS and not i_left else BROKEN
        if n.get("ended_by") is None:
            n["ended_by"] = NONE if n["outcome"] == TIMED_OUT else self.me if i_left else partner

    def _decision_rows(self) -> list[Row]:
        rows = []
        call, members, kind = -1, set[int](), None
        for row in self.decisions:
            i = row["negotiation"]
            key = (self.negotiations[i]["day"], row["round"], row["received"] is None)
            if row["call"] is None:  # decided together: one round, no negotiation twice, all proposals or all answers
                self.missing["call"] += 1
                if i in members or key != kind:
                    call, members = call + 1, set()
                members.add(i)
                kind = key
            offers = dict(zip(("received_quantity", "received_day", "received_price"), row["received"] or (NONE,) * 3))
            offers |= zip(("quantity", "day", "price"), row["own"] or (NONE,) * 3)
            known = call if row["call"] is None else row["call"]
            rows.append({**row, **offers, "agent": self.me, "call": known})
        return rows


def refuse_same_day_issues(path: Path, log: AgentLog) -> None:
    """The same by its issues: nobody may ever agree on another day than today."""
    n = log.negotiations
    ahead = n["day"] < int(log.days.n_steps[0]) - 1
    if ahead.any() and (n["day_max"][ahead] == n["day"][ahead]).all():
        raise words.oneshot(path)


def _table(name: str, rows: list[Row]) -> Table:
    """Columns from rows; what is unknown becomes -1, and a wild number the largest that the column holds."""
    table = {}
    for column, kind in TABLES[name].items():
        values = np.array([NONE if row.get(column) is None else row[column] for row in rows], np.float64)
        if kind.startswith("int"):
            values = np.clip(values, np.iinfo(kind).min, np.iinfo(kind).max)
        table[column] = values.astype(kind)
    return table
