"""One world of a tournament, played and measured: a record per factory, small enough to travel.

Scores come from the simulator; their parts and bounds are recomputed from the signed contracts, and the largest
difference between both is kept in the record. Each agent's own calls are timed, and an exception in `init` or on a
morning is kept: the simulator only counts it.
"""

from __future__ import annotations

import gzip
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import marlab.market.agent.agent
import marlab.market.networks.weights  # noqa: F401  here torch is imported once for all worlds of a batch
from marlab.market.arena.plan import label, position
from marlab.market.logs.worldfile import write_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.simulator.bounds import factory_bounds
from marlab.market.simulator.experts import FILLERS
from marlab.market.simulator.record import RecordedWorld, Recording
from marlab.market.simulator.settlement import MONEY, economy_of, settle
from marlab.market.simulator.worlds import WorldSpec, playing

_TIMED = (
    "init", "before_step", "first_proposals", "counter_all", "propose", "respond", "step", "on_negotiation_success",
    "on_negotiation_failure",
)  # fmt: skip
_MUST_WORK = ("init", "before_step")
"""Without these an agent plays with the numbers of another day, if at all."""
LETTERS = {name: name.removesuffix("StdAgent").replace("SyncRandom", "S")[0] for name in FILLERS}
"""Built-in agents buy most of what is sold, so scores depend on them: G Greedy, R Random, S SyncRandom."""
TRIAL_DAYS = 5


class Clock:
    """Times an agent's own code by wrapping its callbacks on the instance; only outermost calls count."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.cpu_s = 0.0
        self.crashes: list[str] = []
        self._depth = 0
        for name in _TIMED:
            if hasattr(agent, name):
                setattr(agent, name, self._timing(name, getattr(agent, name)))

    def _timing(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            started = time.process_time() if self._depth == 1 else 0.0
            try:
                return call(*args, **kwargs)
            except Exception as error:
                if name in _MUST_WORK:
                    self.crashes.append(f"{name} raised {type(error).__name__}: {error}"[:300])
                raise
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.cpu_s += time.process_time() - started

        return timed

    def report(self) -> dict[str, Any]:
        """CPU seconds, crashes, and what the agent itself reports in `counts` and `seconds`, if it does."""
        counts, seconds = getattr(self.agent, "counts", None), getattr(self.agent, "seconds", None)
        report: dict[str, Any] = {"cpu_s": round(self.cpu_s, 4), "crashes": self.crashes[:3]}
        if isinstance(counts, dict):
            for name in ("decisions", "unsafe", "exceptions"):
                report[f"own_{name}"] = int(counts.get(name, 0))
        if isinstance(seconds, list) and seconds and all(isinstance(s, float) for s in seconds):
            report |= {f"ms_{q}": round(1000 * float(np.quantile(seconds, q / 100)), 3) for q in (50, 95)}
        return report


def play_task(spec: dict[str, Any], keep_logs: bool = False) -> dict[str, Any]:
    """The engine's task: play one world and measure it."""
    return measured_world(WorldSpec.from_dict(spec), keep_logs)


def measured_world(spec: WorldSpec, keep_logs: bool = False) -> dict[str, Any]:
    """Play a world; its record, with one entry per factory in `seats`.

    `keep_logs`: everybody's decisions are recorded, and `logs` holds files by their names: the world's log and the
    decision log of each agent that keeps one.
    """
    if keep_logs:
        with tempfile.TemporaryDirectory(prefix="marlab-logs-") as folder:
            record, log = _measured(replace(spec, tracked=(True,) * len(spec.agents)), Path(folder))
            return {**record, "logs": _files(spec.world_id, log, Path(folder))}
    return _measured(spec, None)[0]


def _files(world_id: str, log: WorldLog, folder: Path) -> dict[str, bytes]:
    """What a replay needs. Bytes, because a worker of a cluster may not share a disk with the tournament."""
    files = {f"{world_id}.{path.stem}.jsonl.gz": gzip.compress(path.read_bytes(), 6) for path in folder.glob("*.jsonl")}
    write_world(folder / "world.parquet", log)
    return {f"{world_id}.parquet": (folder / "world.parquet").read_bytes(), **files}


def _measured(spec: WorldSpec, decisions: Path | None) -> tuple[dict[str, Any], WorldLog]:
    """A world's record and its log; `decisions`: the folder for agents that can write down why they decide."""
    started = time.process_time()
    with playing(spec, RecordedWorld) as world:
        recording = Recording(world, spec)
        writing = []
        for name in recording.index if decisions is not None else ():
            agent = world.agents[name].adapted_object
            if is_dataclass(settings := getattr(agent, "settings", None)) and hasattr(settings, "decision_log"):
                agent.settings = replace(settings, decision_log=decisions)  # type: ignore[type-var]
                writing.append(agent)
        world.recording = recording
        names = list(recording.index)
        clocks = [Clock(world.agents[name].adapted_object) for name in names]
        world.run()
        for agent in writing:
            agent.log.close()
        log = recording.log(world)
        economy = economy_of(world, names)
    contracts = log.tables["contracts"]
    settled = settle(economy, contracts)
    # A world that was cut short has a shorter history than the settlement: compare what was played.
    error = max(
        abs(settled.balance[log.meta["days_played"], f] - agent["final_balance"]) for f, agent in enumerate(log.agents)
    )
    seats = []
    for f, (agent, clock) in enumerate(zip(log.agents, clocks)):
        days = {name: float(settled.parts[name][:, f].sum()) for name in ("shortfall", "produced", "bought")}
        seats.append({
            "place": f, "agent": spec.agents[f], "level": agent["level"],
            "position": position(agent["level"], spec.n_processes), "downstream": downstream(spec, agent["level"]),
            "score": agent["score"], "opening": float(economy.balance[f]), "bankrupt": agent["bankrupt"],
            "exceptions": agent["exceptions"], **settled.shares(f), **days,
            "stock": float(settled.parts["stock"][-1, f]),
            **factory_bounds(economy, contracts, settled, f)._asdict(), **clock.report(),
        })  # fmt: skip
    record = {
        "world_id": spec.world_id, "days": log.meta["days_played"], "n_processes": spec.n_processes,
        "settlement_error": float(error), "recorder_failures": sum(log.meta["failures"].values()),
        "hash_seed": log.meta["hash_seed"], "cpu_s": round(time.process_time() - started, 3), "seats": seats,
    }  # fmt: skip
    return record, log


def downstream(spec: WorldSpec, level: int) -> str:
    """Which built-in agents buy from a level: their letters, `-` for none, `market` behind the last level."""
    if level == spec.n_processes - 1:
        return "market"
    buyers = {label(agent) for agent, where in zip(spec.agents, spec.processes) if where == level + 1}
    return "".join(sorted(letter for name, letter in LETTERS.items() if name in buyers)) or "-"


def trial_task(agent: str) -> dict[str, Any]:
    """The engine's task: can this agent play at all? A tiny world with it at the first, a middle and the last level."""
    others = ("SyncRandomStdAgent", "GreedyStdAgent")
    seated = tuple(name for other in (*others, others[0]) for name in (agent, other))
    spec = WorldSpec("trial", 1, 1, TRIAL_DAYS, (0, 0, 1, 1, 2, 2), seated, (False,) * 6)
    record = measured_world(spec)
    mine = [seat for seat in record["seats"] if seat["place"] % 2 == 0]
    return {
        "crashes": [crash for seat in mine for crash in seat["crashes"]],
        "exceptions": sum(seat["exceptions"] for seat in mine),
    }


def money_parts(seats: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Mean shares of the opening balance: 1 + the first - all others is the score."""
    return {name: float(np.mean([seat[name] for seat in seats])) for name in MONEY}
