"""Finding logs below a folder, and choosing the expert whose decisions become samples."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_parquet
from marlab.lab.runs.files import first_line, read_gzip
from marlab.lab.runs.records import find_run
from marlab.market.logs.daystate import HORIZON
from marlab.market.logs.tracker import find_trackers, read_tracker
from marlab.market.logs.tracker_words import oneshot, world_name
from marlab.market.logs.worldfile import check_meta, read_world
from marlab.market.logs.worldlog import EVERYBODY, AgentLog

_HEAD = 1 << 16
"""Bytes of a tracker file that are looked at for its agent and world."""


UNUSABLE = (UserError, ArithmeticError, LookupError, ValueError, TypeError, RecursionError)
"""What reading a stranger's log can raise: values that pass every check may still mean nothing together."""


def why_unusable(path: Path | str, error: BaseException) -> str:
    """The sentence about a log that cannot be used."""
    if isinstance(error, UserError):
        return str(error)
    told = (str(error).splitlines() or [""])[0][:120]
    return f"{path} is damaged: its values do not fit together ({type(error).__name__}: {told})."


class LogFile(NamedTuple):
    """A file with logs, before it is read: what choosing and splitting need to know."""

    path: Path
    world: str
    repeat: str  # equal for repeated runs of the same agents in the same market
    market: str  # equal for all worlds in the same market
    types: tuple[str, ...]  # class names of the tracked agents in it


class FoundLogs(NamedTuple):
    """What is below a folder."""

    logs: list[LogFile]
    bad: dict[str, str]  # path -> why it cannot be used


def place_of(text: str) -> Path:
    """The file or folder of this name, else the directory of the run of this name."""
    return Path(text) if Path(text).exists() else find_run(text).path


def find_logs(place: Path) -> FoundLogs:
    """All logs in a file or below a folder: recorded worlds, and tracker files where no recorded world is."""
    if not place.exists():
        raise UserError(f"There is nothing at {place}; give a run of `marlab market collect` or a folder with logs.")
    whole = place.is_dir()
    worlds = sorted(place.rglob("*.parquet")) if whole else [place] if place.suffix == ".parquet" else []
    trackers = find_trackers(place) if whole else [] if worlds else [place]
    found = FoundLogs([], {})
    for path in worlds:
        _look(path, _world, found)
    recorded = {log.world for log in found.logs}
    for path in trackers:
        _look(path, _tracker, found)
    # a run that was also exported holds every agent twice
    logs = [log for log in found.logs if log.path.suffix == ".parquet" or log.world not in recorded]
    bad = found.bad
    if not logs and not bad:
        raise UserError(
            f"{place} holds no logs: expected worlds of `marlab market collect` or tracker_logs/agent_*.json below it."
        )
    if not logs:
        raise UserError(f"No log in {place} can be used ({len(bad)} files); the first: {next(iter(bad.values()))}")
    return FoundLogs(logs, bad)


def _look(path: Path, read: Callable[[Path], LogFile | None], found: FoundLogs) -> None:
    try:
        log = read(path)
    except UNUSABLE as error:
        found.bad[path.as_posix()] = why_unusable(path, error)
    else:
        found.logs.extend([log] if log is not None else [])


def _world(path: Path) -> LogFile | None:
    """The head of a recorded world; None if the file is a table of something else."""
    try:
        table = read_parquet(path, ["meta", "days.agent"])
        if len(table.column_names) < 2:
            return None
        meta = json.loads(table.column("meta")[0].as_py())
    except (OSError, LookupError, TypeError, RecursionError, pa.ArrowException, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{path} is damaged: {why[:200]}") from None
    if isinstance(meta, dict) and "oneshot" in str(meta.get("world_type", "")).lower():
        raise oneshot(path)
    check_meta(path, meta)
    spec = meta.get("spec", {})
    market = str(spec.get("market_seed", meta["world_id"]))
    seats = [spec.get(name) for name in ("market_seed", "n_steps", "processes", "agents")]
    repeat = hashlib.sha256(json.dumps(seats).encode()).hexdigest()[:12] if spec else meta["world_id"]
    types = tuple(sorted({agent["type"] for agent in meta["agents"] if agent["tracked"]}))
    return LogFile(path, meta["world_id"], repeat, market, types)


def _tracker(path: Path) -> LogFile:
    """Agent and world of a tracker file; they stand at its beginning, otherwise all of it has to be read."""
    try:
        head = read_gzip(path, _HEAD).decode(errors="ignore")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or first_line(error)}.") from None
    before = head.partition('"entries"')[0]
    world_id, agent_type = _text(before, "world_id"), _text(head, "agent_type_raw") or _text(before, "agent_type")
    if world_id is None or agent_type is None:
        log = read_tracker(path)
        return LogFile(path, log.world_id, log.world_id, log.world_id, (log.agent_type,))
    world = world_name(world_id, path)
    return LogFile(path, world, world, world, (agent_type.removesuffix("Tracked") or agent_type,))


def _text(head: str, key: str) -> str | None:
    """The first text called `key` in a piece of JSON."""
    match = re.search(rf'"{key}"\s*:\s*("(?:[^"\\]|\\.)*")', head)
    try:
        return None if match is None else str(json.loads(match[1])).encode().decode()
    except ValueError:  # not JSON after all; reading the whole file says what is wrong with it
        return None


def choose_experts(name: str, types: Iterable[str]) -> frozenset[str]:
    """The class names meant by an expert's name: that very class, else all whose name begins with it.

    Never a part from the middle: "Pe" means PenguinAgent, and not UltraSuperMiracleSoraFinalAgentZ.
    """
    kinds = sorted(set(types))
    if name == EVERYBODY:
        return frozenset(kinds)
    wanted = _plain(name)
    if len(wanted) < 2:
        raise UserError(f"The expert's name is '{name}', expected a class name or at least its first two letters.")
    same = [kind for kind in kinds if _plain(kind) == wanted]
    chosen = same or [kind for kind in kinds if _plain(kind).startswith(wanted)]
    if not chosen:
        raise UserError(f"No log is of an agent '{name}'; the logs are of {', '.join(kinds) or 'nobody'}.")
    return frozenset(chosen)


def _plain(name: str) -> str:
    """A class name as it is compared: without its module, case and a tracker's ending."""
    return name.rpartition(".")[2].lower().removesuffix("tracked")


def read_logs(path: Path, experts: frozenset[str], horizon: int = HORIZON) -> Iterator[AgentLog]:
    """The logs of chosen agents in a file."""
    if ".json" in path.suffixes:
        logs: Iterable[AgentLog] = [read_tracker(path, horizon)]
    else:
        world = read_world(path)
        chosen = [i for i, agent in enumerate(world.agents) if agent["tracked"] and agent["type"] in experts]
        logs = (world.agent(i, horizon) for i in chosen)
    return (log for log in logs if log.agent_type in experts)
