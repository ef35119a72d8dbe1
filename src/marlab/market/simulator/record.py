"""Recording a world while it is played, without touching a class: world hooks and wrappers on agent instances.

The world (a subclass with three hooks) tells about mornings, negotiations, contracts and reports; the wrappers, set as
attributes of the agents themselves, tell what a tracked agent was asked and what it answered. Nothing recorded changes
what happens: no random number is drawn, and an exception of the recorder is counted in the log instead of raised into
the world.
"""

from __future__ import annotations

import functools
import importlib.metadata
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from negmas.sao import ResponseType, SAOSyncController
from scml.oneshot.common import is_system_agent
from scml.std import SCML2024StdWorld

from marlab.lab.engine.keeper import task_folder
from marlab.lab.errors import UserError
from marlab.market.logs.daystate import LINES, SCHEDULES
from marlab.market.logs.worldfile import write_world
from marlab.market.logs.worldlog import (
    ACCEPT,
    AGREED,
    BROKEN,
    END,
    EXOGENOUS,
    NONE,
    REJECT,
    TABLES,
    TIMED_OUT,
    Table,
    WorldLog,
)
from marlab.market.simulator.awi import Reader
from marlab.market.simulator.settlement import economy_of
from marlab.market.simulator.worlds import WorldSpec, hash_seed, playing

_NO_OFFER = (NONE, NONE, NONE)
_NEGOTIATION = {name: place for place, name in enumerate(TABLES["negotiations"])}
_WIDEST = 32767  # quantities and days are kept as int16; a wild offer of a broken agent must not end the recording


class RecordedWorld(SCML2024StdWorld):
    """A Standard world that reports to a recording; until one is attached it is as silent as its parent."""

    recording: Recording | None = None

    def simulation_step(self, stage: int = 0) -> None:
        """Before the negotiations (stage 0) everybody's morning is known, afterwards the day is settled."""
        super().simulation_step(stage)
        if self.recording is not None:
            self.recording.guarded(self.recording.morning if stage == 0 else self.recording.evening, self)

    def on_contract_concluded(self, contract: Any, to_be_signed_at: int) -> None:
        """Negotiated and exogenous contracts; the partners have not been told yet."""
        super().on_contract_concluded(contract, to_be_signed_at)
        if self.recording is not None:
            self.recording.guarded(self.recording.contract, self, contract)

    def on_negotiation_end(self, info: Any) -> None:
        """A negotiation has ended, whichever way; its history is complete."""
        super().on_negotiation_end(info)
        if self.recording is not None:
            self.recording.guarded(self.recording.negotiation_ended, info)


def factories(world: Any) -> list[str]:
    """The agents that have a factory, in the world's order."""
    return [name for name in world.agents if not is_system_agent(name)]


def exogenous_of(world: Any, names: Sequence[str]) -> np.ndarray:
    """[4, F, T] units and unit prices of what the market delivers and takes, for factories by name."""
    index = {name: place for place, name in enumerate(names)}
    out = np.zeros((len(EXOGENOUS), len(names), world.n_steps), np.int64)
    for day, contracts in world.exogenous_contracts.items():
        for contract in contracts:
            note, terms = contract.annotation, contract.agreement
            side, whose = (0, note["buyer"]) if note["buyer"] in index else (2, note["seller"])
            units, price = out[side : side + 2, index[whose]]
            if units[day]:
                raise UserError(f"World {world.name} has two exogenous contracts for one factory and day.")
            units[day], price[day] = terms["quantity"], terms["unit_price"]
    return out


class ForeignWorld(NamedTuple):
    """What is known of a world that somebody else made: enough to record it, not enough to play it again."""

    world_id: str
    market_seed: str
    """Equal for worlds in the same market, so that samples of one market stay on one side of a split."""

    def to_dict(self) -> dict[str, Any]:
        """The log's entry; readers take what is missing as unknown."""
        return {"market_seed": self.market_seed, "foreign": True}


class Recording:
    """What has been seen of one world so far. Rows are plain tuples in the order of `TABLES`."""

    def __init__(self, world: Any, spec: WorldSpec | ForeignWorld) -> None:
        self.failures: Counter[str] = Counter()
        self.spec = spec
        self._ids = factories(world)
        self.index = {name: place for place, name in enumerate(self._ids)}
        self._slots = int(world.horizon)
        self._seq = 0
        self._rows: dict[str, list[Any]] = {name: [] for name in TABLES}
        self._schedules: dict[str, list[list[float]]] = {name: [] for name in SCHEDULES}
        self._reach: list[list[int]] = []
        self._rates: list[list[list[float]]] = []
        self._errors: Counter[int] = Counter()  # negotiations that ended with an exception, by the agent that raised it
        self._number: dict[str, int] = {}  # of running negotiations, by the mechanism's id
        self.number_with: list[dict[str, int]] = [{} for _ in self._ids]  # today's negotiations of an agent, by partner
        self._watches: dict[str, Watch] = {}
        self._readers: dict[str, Reader] = {}
        if isinstance(spec, WorldSpec):
            for name, tracked in zip(self._ids, spec.tracked):
                if tracked:
                    self.track(world, name)

    def track(self, world: Any, name: str) -> None:
        """Record the mornings and answers of this agent too, from its first day on; twice is once."""
        if name not in self._watches:
            self._watches[name] = Watch(self, self.index[name], world.agents[name].adapted_object)
            self._readers[name] = Reader()

    def guarded(self, note: Callable[..., None], *args: Any) -> None:
        """Call a note-taker; what goes wrong in it is counted, never raised."""
        try:
            note(*args)
        except Exception as error:
            self.failures[f"{note.__name__}: {type(error).__name__}: {error}"[:200]] += 1

    def next_seq(self) -> int:
        """The world's counter of events."""
        self._seq += 1
        return self._seq

    # --- what the world tells -------------------------------------------------------------------------------------

    def morning(self, world: Any) -> None:
        """Prices, the day's negotiations and the state of every tracked agent, before the first offer."""
        day = world.current_step
        if day == 0:
            self.guarded(self._given, world)
        self._rows["prices"] += [(day, product, float(price)) for product, price in enumerate(world.trading_prices)]
        self._open_negotiations(world, day)
        for name, reader in self._readers.items():
            scalars, schedules, reach = reader.values(world.agents[name].awi, self._slots)
            self._rows["days"].append((self.index[name], *scalars))
            for field, schedule in zip(SCHEDULES, schedules):
                self._schedules[field].append(schedule)
            self._reach.append(reach)
        for watch in self._watches.values():
            watch.new_day()

    def _given(self, world: Any) -> None:
        """What the market gave to everybody, and rates and exogenous contracts of all days to come."""
        economy, exogenous = economy_of(world, self._ids), exogenous_of(world, self._ids)
        given = (economy.lines, economy.cost, economy.balance)
        self._rows["factories"] += zip(range(len(self._ids)), *(values.tolist() for values in given))
        self._rates = np.stack([economy.storage, economy.shortfall, *exogenous]).tolist()  # [6][F][T]

    def _open_negotiations(self, world: Any, day: int) -> None:
        for partners in self.number_with:
            partners.clear()
        ranges: dict[int, tuple[int, ...]] = {}
        rows = self._rows["negotiations"]
        for info in world._negotiations.values():
            note = info.annotation
            product, seller, buyer = note["product"], note["seller"], note["buyer"]
            if product not in ranges:
                quantity, time, price = world._current_issues[product]
                bounds = [int(v) for issue in (quantity, time, price) for v in (issue.min_value, issue.max_value)]
                ranges[product] = tuple(bounds)
            number = self._number[info.mechanism.id] = len(rows)
            s, b = self.index[seller], self.index[buyer]
            self.number_with[s][buyer] = self.number_with[b][seller] = number
            caller = s if note["caller"] == seller else b
            rows.append([day, s, b, product, caller, *ranges[product], NONE, NONE, 0])

    def negotiation_ended(self, info: Any) -> None:
        """Outcome, who left, and every offer in order."""
        mechanism = info.mechanism
        number = self._number.pop(mechanism.id)
        row = self._rows["negotiations"][number]
        state = mechanism._current_state
        owners = {negotiator.id: self.index[negotiator.owner.id] for negotiator in mechanism.negotiators}
        if state.agreement is not None:
            outcome = AGREED
        elif state.timedout:
            outcome = TIMED_OUT
        else:
            outcome = BROKEN
            last = mechanism.negotiators[mechanism._last_checked_negotiator]
            row[_NEGOTIATION["ended_by"]] = owners[last.id]
            self._errors[owners[last.id]] += bool(state.has_error)
        row[_NEGOTIATION["outcome"]] = outcome
        row[_NEGOTIATION["rounds"]] = state.step
        offers = self._rows["offers"]
        for then in mechanism.history:
            for negotiator, offer in then.new_offers:
                if offer is not None:
                    offers.append((number, then.step, then.relative_time, owners[negotiator], *_whole(offer)))

    def contract(self, world: Any, contract: Any) -> None:
        """A contract is known from here on: to the agents' AWI, and to every later event."""
        agreement, note = contract.agreement, contract.annotation
        number = self._number.get(contract.mechanism_id, NONE) if contract.mechanism_id else NONE
        if number == NONE and contract.mechanism_id:  # its negotiation has just ended and was closed
            number = self.number_with[self.index[note["seller"]]][note["buyer"]]
        seller, buyer = (self.index.get(note[side], NONE) for side in ("seller", "buyer"))
        terms = _whole((agreement["quantity"], agreement["time"], agreement["unit_price"]))
        row = (self.next_seq(), number, world.current_step, seller, buyer, note["product"], *terms)
        self._rows["contracts"].append(row)

    def evening(self, world: Any) -> None:
        """Financial reports, on the days on which they are published; balances and stock of everybody."""
        day = world.current_step
        reports = world.bulletin_board.data["reports_time"].get(str(day), {})
        rows = [(day, self.index[name], float(r.cash), int(r.is_bankrupt)) for name, r in reports.items()]
        self._rows["reports"] += rows
        for place, name in enumerate(self._ids if self._rates else ()):
            rates = (values[place][day] for values in self._rates)
            after = float(world.current_balance(name)), int(world._inventory_input[name])
            self._rows["evenings"].append((day, place, *rates, *after))

    def decision(self, row: tuple[Any, ...]) -> None:
        """One answer of a tracked agent."""
        self._rows["decisions"].append(row)

    # --- the log --------------------------------------------------------------------------------------------------

    def log(self, world: Any) -> WorldLog:
        """Everything as a WorldLog; call it when the world has ended."""
        tables = {name: _columns(name, rows) for name, rows in self._rows.items()}
        order = np.lexsort((tables["decisions"]["negotiation"], tables["decisions"]["seq"]))
        tables["decisions"] = {name: values[order] for name, values in tables["decisions"].items()}
        rows = len(self._reach)
        schedules = {
            name: np.asarray(values, dtype=np.float64).reshape(rows, self._slots + 1)
            for name, values in self._schedules.items()
        }
        reach = np.asarray(self._reach, dtype=np.int64).reshape(rows, LINES)
        return WorldLog(self._meta(world, tables), tables, schedules, reach)

    def _meta(self, world: Any, tables: dict[str, Table]) -> dict[str, Any]:
        decided = np.bincount(tables["decisions"]["agent"], minlength=len(self._ids))
        scores = world.scores()
        agents = []
        for place, name in enumerate(self._ids):
            cls = type(world.agents[name].adapted_object)
            agents.append({
                "id": name, "type": cls.__name__, "full_type": f"{cls.__module__}.{cls.__qualname__}",
                "level": int(world.agent_profiles[name].input_product), "tracked": name in self._watches,
                "score": float(scores[name]), "final_balance": float(world.current_balance(name)),
                "bankrupt": bool(world.is_bankrupt[name]), "decisions": int(decided[place]),
                "exceptions": len(world.agent_exceptions.get(name, ())) + self._errors[place],
            })  # fmt: skip
        return {
            "world_id": self.spec.world_id, "world_type": "SCML2024StdWorld", "spec": self.spec.to_dict(),
            "hash_seed": hash_seed(), "n_steps": int(world.n_steps), "days_played": int(world.current_step),
            "n_processes": int(world.n_processes), "league_horizon": self._slots,
            "versions": {name: _version(name) for name in ("scml", "negmas", "scml-agents")},
            "final_prices": [float(price) for price in world.trading_prices],
            "sync": all(isinstance(world.agents[name].adapted_object, SAOSyncController) for name in self._ids),
            "agents": agents, "failures": dict(sorted(self.failures.items())),
            **_agreement_of(tables, [name in self._watches for name in self._ids]),
        }  # fmt: skip


class Watch:
    """The wrappers of one tracked agent: what it was asked, what it answered, and what was decided together.

    `respond` and `propose` are what a negotiation really asks, so their results are the rows. An agent that decides
    jointly does so earlier, in `first_proposals` and `counter_all`: these stamp the answers that follow from them.
    """

    def __init__(self, recording: Recording, agent: int, target: Any) -> None:
        self._recording, self._agent = recording, agent
        self._calls = 0
        self._depth = 0  # an agent may ask itself: only the outermost call is an answer to a partner
        self._first: dict[str, tuple[int, int]] = {}  # partner -> (seq, call) of its joint first proposal
        self._counter: dict[str, tuple[int, int]] = {}
        self._rejected: dict[str, tuple[int, int, Any]] = {}  # partner -> stamp and state, until its offer is known
        self._respond, self._propose = target.respond, target.propose
        target.respond, target.propose = self.respond, self.propose
        for name, stamps in (("first_proposals", self._first), ("counter_all", self._counter)):
            if hasattr(target, name):
                setattr(target, name, self._stamping(getattr(target, name), stamps))

    def new_day(self) -> None:
        """Forget what was decided yesterday."""
        self._first.clear()
        self._counter.clear()
        self._rejected.clear()

    def _stamping(self, decide: Callable[..., Any], stamps: dict[str, tuple[int, int]]) -> Callable[..., Any]:
        def decide_together(*args: Any, **kwargs: Any) -> Any:
            asked = kwargs.get("offers", args[0] if args else None)
            partners = list(asked) if asked is not None else None
            answers = decide(*args, **kwargs)
            self._recording.guarded(self._stamp, stamps, partners if partners is not None else answers)
            return answers

        return decide_together

    def _stamp(self, stamps: dict[str, tuple[int, int]], partners: Sequence[str] | None) -> None:
        stamp = self._new_stamp()
        for partner in partners or ():
            stamps[partner] = stamp

    def _new_stamp(self) -> tuple[int, int]:
        self._calls += 1
        return self._recording.next_seq(), self._calls

    def _taken(self, stamps: dict[str, tuple[int, int]], partner: str) -> tuple[int, int]:
        """The stamp of an answer that was decided before, or a new one."""
        return stamps.pop(partner) if partner in stamps else self._new_stamp()

    def respond(self, negotiator_id: str, state: Any, *args: Any, **kwargs: Any) -> Any:
        """The agent's answer to an offer, noted."""
        self._depth += 1
        try:
            answer = self._respond(negotiator_id, state, *args, **kwargs)
        finally:
            self._depth -= 1
        if self._depth == 0 and answer is not ResponseType.WAIT:
            self._recording.guarded(self._note_response, negotiator_id, state, answer)
        return answer

    def propose(self, negotiator_id: str, state: Any, *args: Any, **kwargs: Any) -> Any:
        """The agent's own offer, noted."""
        self._depth += 1
        try:
            offer = self._propose(negotiator_id, state, *args, **kwargs)
        finally:
            self._depth -= 1
        if self._depth == 0:
            self._recording.guarded(self._note_proposal, negotiator_id, state, offer)
        return offer

    def _note_response(self, partner: str, state: Any, answer: Any) -> None:
        kind = getattr(answer, "response", answer)  # an extended response carries data beside it
        if kind is ResponseType.WAIT:
            return
        seq, call = self._taken(self._counter, partner)
        if kind is ResponseType.REJECT_OFFER:
            self._rejected[partner] = (seq, call, state)
        elif kind is ResponseType.ACCEPT_OFFER:
            self._row(seq, call, partner, state, ACCEPT, state.current_offer)
        elif kind in (ResponseType.END_NEGOTIATION, ResponseType.LEAVE):
            self._row(seq, call, partner, state, END, None)
        else:
            raise ValueError(f"answer {kind} is not recorded")

    def _note_proposal(self, partner: str, state: Any, offer: Any) -> None:
        offer = getattr(offer, "outcome", offer)
        if partner in self._rejected:
            seq, call, answered = self._rejected.pop(partner)
            self._row(seq, call, partner, answered, END if offer is None else REJECT, offer)
        elif state.current_offer is None and offer is not None:  # a first move; one that is skipped is no decision
            seq, call = self._taken(self._first, partner)
            self._row(seq, call, partner, state, REJECT, offer)

    def _row(self, seq: int, call: int, partner: str, state: Any, op: int, offer: Any) -> None:
        received = _NO_OFFER if state.current_offer is None else _whole(state.current_offer)
        made = _NO_OFFER if offer is None else _whole(offer)
        number = self._recording.number_with[self._agent][partner]
        row = (seq, self._agent, call, number, state.step, state.relative_time, *received, op, *made)
        self._recording.decision(row)


def record_world(spec: WorldSpec, *, tables: Path | None = None, look: Callable[[Any], None] | None = None) -> WorldLog:
    """Play a world and return its log. `tables`: keep the simulator's own files in this folder (slower); `look` is
    shown the world after its end."""
    with playing(spec, RecordedWorld, tables=tables) as world:
        recording = Recording(world, spec)
        world.recording = recording
        world.run()
        if look is not None:
            look(world)
        return recording.log(world)


def record_task(spec: dict[str, Any], tables: str | None = None) -> tuple[bytes, float]:
    """The engine's task: play one world; returns its log file as bytes and the CPU seconds it took.

    Bytes, because a worker of a cluster may not share a disk with the process that collects.
    """
    started = time.process_time()
    log = record_world(WorldSpec.from_dict(spec), tables=None if tables is None else Path(tables))
    return as_bytes(log), time.process_time() - started


def as_bytes(log: WorldLog) -> bytes:
    """The content of a log's file."""
    with tempfile.TemporaryDirectory(prefix="marlab-log-", dir=task_folder()) as folder:
        path = Path(folder) / "world.parquet"
        write_world(path, log)
        return path.read_bytes()


def _whole(offer: Sequence[Any]) -> tuple[int, int, int]:
    """(quantity, day, price) as the log keeps them."""
    quantity, day, price = offer
    return max(min(int(quantity), _WIDEST), -_WIDEST), max(min(int(day), _WIDEST), -_WIDEST), int(price)


def _columns(name: str, rows: list[Any]) -> Table:
    kinds = TABLES[name]
    columns = zip(*rows) if rows else [()] * len(kinds)
    return {column: np.asarray(values, dtype=kind) for (column, kind), values in zip(kinds.items(), columns)}


def _agreement_of(tables: dict[str, Table], tracked: list[bool]) -> dict[str, int]:
    """Do the offers that negotiations saw and the offers that agents were heard to make agree?"""
    decisions, offers = tables["decisions"], tables["offers"]
    made = decisions["op"] == REJECT
    shown = np.asarray(tracked, dtype=bool)[offers["by"]]
    what = ("negotiation", "round", "quantity", "day", "price")
    heard = Counter(zip(*(decisions[name][made].tolist() for name in ("agent", *what))))
    seen = Counter(zip(*(offers[name][shown].tolist() for name in ("by", *what))))
    return {
        "invalid_offers": (heard - seen).total(),  # out of range or no integers: the simulator ended the negotiation
        "unheard_offers": (seen - heard).total(),  # decisions that the recorder missed; 0 if it works
    }


@functools.cache
def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
