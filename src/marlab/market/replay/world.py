"""A recorded world as plain values for its page: a summary of all days, and every negotiation in parts of some days.

The summary has what is always on the screen: who the factories are, prices, balances, and what was bought, produced and
sold. Negotiations with their offers, and the reasons of agents that keep a decision log, are large; they come in parts
of `DAYS_A_PART` days, which a page loads when somebody looks at one of these days. Rows are lists in the order that
`NEGOTIATION`, `OFFER` and `REASON` name, because names in every row would be most of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_gzip
from marlab.market.arena.plan import label
from marlab.market.logs.worldfile import read_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.simulator.settlement import Economy, Settlement, settle

DAYS_A_PART = 10
NEGOTIATION = (
    "day", "seller", "buyer", "product", "caller", "outcome", "ended_by", "rounds", "quantity_max", "day_max",
    "price_min", "price_max",
)  # fmt: skip
OFFER = ("round", "by", "quantity", "day", "price")
"""By: the number of the agent that speaks; day: of the delivery."""
CONTRACT = ("day", "seller", "buyer", "product", "quantity", "delivery", "price", "negotiation")
REASON = (
    "round", "op", "offer", "baseline", "alpha", "why", "clip", "residual", "chances", "money", "left", "more",
)  # fmt: skip
"""
why: the rule (a number of `texts`), or -1 where a network chose; clip: what L1 changed (a number of `texts`);
residual: what the network adds to the baseline; chances: of accept, reject and end; money: of taking the offer, of the
own lot, of waiting; left: L1's room before this round (a number of `caps`); more: whatever else an agent tells.
"""
FLOWS = ("bought", "supplied", "produced", "shortfall", "stock")
"""Units of a factory on a day: negotiated purchases and exogenous supplies that arrived, what was made and sold, what
was owed and not delivered, and the input that was left."""
_SHOWN = {
    "kind", "day", "partner", "selling", "round", "received", "op", "offer", "clip", "baseline", "alpha", "rule",
    "residual", "op_probabilities", "alternatives",
}  # fmt: skip


class WorldReplay:
    """One world of a tournament with `--keep-logs`, read when it is asked for."""

    def __init__(self, file: Path) -> None:
        """`file`: WORLD_ID.parquet; decision logs lie beside it as WORLD_ID.AGENT.jsonl.gz."""
        self._file = file

    @cached_property
    def log(self) -> WorldLog:
        return read_world(self._file)

    @cached_property
    def settlement(self) -> Settlement:
        return settle(economy_of_log(self.log), self.log.tables["contracts"])

    @cached_property
    def reasons(self) -> dict[int, list[dict[str, Any]]]:
        """Lines of the decision logs by the number of the agent."""
        names = {agent["id"].replace("@", "_at_"): index for index, agent in enumerate(self.log.agents)}
        prefix = f"{self._file.stem}."
        found = {}
        for path in sorted(self._file.parent.glob("*.jsonl.gz")):
            name = path.name.removeprefix(prefix).removesuffix(".jsonl.gz")
            if path.name.startswith(prefix) and name in names:
                found[names[name]] = _lines(path)
        return found

    @property
    def days(self) -> int:
        return int(self.log.meta["days_played"])

    def summary(self) -> dict[str, Any]:
        """What is always on the screen."""
        log, settled, days = self.log, self.settlement, self.days
        given = settled.parts
        arrived = _supplied(log, settled.executed, days)
        flows = {name: _whole(given[name][:days].T) for name in FLOWS if name != "supplied"}
        played = log.meta.get("spec", {}).get("agents") or []
        factories = [
            {
                "id": agent["id"],
                "type": label(played[index]) if index < len(played) else agent["type"],
                "level": agent["level"],
                "score": agent["score"],
                "final": round(float(agent["final_balance"]), 2),
                "bankrupt": int(settled.bankrupt_on[index]),
                "explained": index in self.reasons,
            }
            for index, agent in enumerate(log.agents)
        ]
        return {
            "world": log.meta["world_id"],
            "days": days,
            "levels": log.meta["n_processes"],
            "part": DAYS_A_PART,
            "horizon": log.meta["league_horizon"],
            "factories": factories,
            "prices": np.round(settled.prices[: days + 1].T, 3).tolist(),
            "balance": np.round(settled.balance[: days + 1].T, 2).tolist(),
            "flows": {**flows, "supplied": _whole(arrived)},
        }

    def contracts(self) -> dict[str, Any]:
        """All signed contracts, column by column; a seller or buyer of -1 is the market."""
        table = self.log.tables["contracts"]
        columns = {name: table[name].astype(np.int64).tolist() for name in CONTRACT}
        return {**columns, "executed": self.settlement.executed.astype(int).tolist()}

    def part_names(self) -> dict[str, int]:
        """Name of a part -> its first day."""
        return {f"days-{first}": first for first in range(0, self.days, DAYS_A_PART)}

    def part(self, first: int) -> dict[str, Any]:
        """The negotiations of some days from `first` on, and the reasons behind them."""
        until = first + DAYS_A_PART
        table, offers = self.log.tables["negotiations"], self.log.tables["offers"]
        chosen = np.flatnonzero((table["day"] >= first) & (table["day"] < until))
        order = np.argsort(offers["negotiation"], kind="stable")
        at = np.searchsorted(offers["negotiation"][order], np.arange(len(table["day"]) + 1))
        rows = []
        for number in chosen.tolist():
            here = order[at[number] : at[number + 1]]
            said = np.stack([offers[name][here].astype(np.int64) for name in OFFER], 1).tolist()
            rows.append([number, [int(table[name][number]) for name in NEGOTIATION], said])
        return {"negotiations": rows, "reasons": self._reasons(first, until)}

    def _reasons(self, first: int, until: int) -> dict[str, Any]:
        """Agent -> {days, decisions}; texts and rooms that repeat are told once."""
        ids = {agent["id"]: index for index, agent in enumerate(self.log.agents)}
        texts: dict[str, int] = {}
        agents = {}
        for index, lines in self.reasons.items():
            caps: list[list[Any]] = []
            mornings, decisions = [], []
            for line in lines:
                if not first <= line.get("day", -1) < until:
                    continue
                if line["kind"] == "day":
                    mornings.append([line["day"], line["goal"], line["stock"], line["balance"]])
                if line["kind"] in ("day", "round"):
                    room = [line["buy_cap"], line["sell_cap"], round(line["budget"], 2)]
                    if not caps or caps[-1] != room:
                        caps.append(room)
                if line["kind"] == "decision" and line["partner"] in ids:
                    told = [line["day"], ids[line["partner"]], int(line["selling"])]
                    decisions.append([*told, *_reason(line, texts, len(caps) - 1)])
            agents[str(index)] = {"mornings": mornings, "caps": caps, "decisions": decisions}
        return {"agents": agents, "texts": list(texts)}


def economy_of_log(log: WorldLog) -> Economy:
    """What the market gave, as the factories' mornings tell it."""
    table, factories, days = log.tables["days"], len(log.agents), int(log.meta["n_steps"])
    first = np.zeros(factories, np.int64)
    rates = {name: np.zeros((factories, days)) for name in ("storage_cost", "shortfall_penalty")}
    for factory in range(factories):
        mine = np.flatnonzero(table["agent"] == factory)
        if not len(mine):
            raise UserError(f"The log of {log.meta['world_id']} tells no morning of {log.agents[factory]['id']}.")
        first[factory] = mine[0]
        for name, values in rates.items():
            values[factory, table["day"][mine].astype(int)] = table[name][mine]
    prices = log.tables["prices"]
    opening = prices["day"] == prices["day"].min()
    catalogue = np.zeros(int(log.meta["n_processes"]) + 1)
    catalogue[prices["product"][opening]] = prices["price"][opening]
    return Economy(
        level=np.array([agent["level"] for agent in log.agents]),
        lines=table["n_lines"][first].astype(np.int64),
        cost=table["production_cost"][first],
        balance=table["initial_balance"][first],
        storage=rates["storage_cost"],
        shortfall=rates["shortfall_penalty"],
        catalogue=catalogue,
    )


def _supplied(log: WorldLog, executed: np.ndarray, days: int) -> np.ndarray:
    """[F, T] exogenous supplies that arrived."""
    table = log.tables["contracts"]
    arrived = np.zeros((len(log.agents), days))
    due = executed & (table["seller"] < 0) & (table["buyer"] >= 0) & (table["delivery"] < days)
    np.add.at(arrived, (table["buyer"][due], table["delivery"][due]), table["quantity"][due])
    return arrived


def _reason(line: Mapping[str, Any], texts: dict[str, int], left: int) -> list[Any]:
    """A decision in the order of REASON."""
    money = line.get("alternatives")
    more = {name: _short(value) for name, value in line.items() if name not in _SHOWN}
    known = {
        "round": line["round"], "op": line["op"], "offer": line["offer"], "baseline": _short(line.get("baseline")),
        "alpha": _short(line.get("alpha")), "why": _number_of(line.get("rule"), texts),
        "clip": _number_of(line["clip"], texts), "residual": _short(line.get("residual")),
        "chances": _short(line.get("op_probabilities")), "more": more or None,
        "money": None if money is None else [money["take"], money["offer"], money["wait"]], "left": left,
    }  # fmt: skip
    return [known[name] for name in REASON]


def _number_of(text: str | None, texts: dict[str, int]) -> int:
    return -1 if not text else texts.setdefault(text, len(texts))


def _short(value: Any) -> Any:
    """Numbers with four digits behind the point: a page shows no more."""
    if isinstance(value, list):
        return [_short(each) for each in value]
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def _whole(values: np.ndarray) -> list[list[int]]:
    return np.rint(values).astype(np.int64).tolist()


def _lines(path: Path) -> list[dict[str, Any]]:
    """A decision log; a last line that is cut (its world died) is left out, as are lines of other kinds."""
    try:
        text = read_gzip(path).decode("utf-8", "replace")
    except OSError as error:
        raise UserError(f"{path} is not a decision log: {error}.") from None
    return [line for line in map(_parsed, text.splitlines()) if isinstance(line, dict) and "kind" in line]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
