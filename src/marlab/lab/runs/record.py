"""run.json: what it holds, read with care because it may come from a stranger or from half a crash."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json
from marlab.lab.runs.judged import is_stored as is_judged
from marlab.lab.verdict import is_stored

SCHEMA = 1
STATUSES = ("planned", "running", "finished", "interrupted", "failed", "abandoned")


def new_record(world: str, name: str) -> dict[str, Any]:
    empty = dict.fromkeys(("reason", "kind", "command", "config_hash", "config_type", "seed", "started", "ended"))
    return {
        "schema": SCHEMA, "world": world, "name": name, "status": "planned", **empty, "created": now(),
        "versions": {}, "host": {}, "attempts": [], "parent": None, "tags": [], "group": None, "goal": None,
        "preset": None, "judged_by": None, "inferred": [], "stages": [], "total": None, "results": {}, "verdict": [],
        "root": None,
    }  # fmt: skip


def read_record(path: Path) -> dict[str, Any]:
    """The record of the run at `path`, with every field there and of its type."""
    file = path / "run.json"
    record = read_json(file, lambda why: UserError(f"The run record cannot be read: {why}."))
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        schema = record.get("schema") if isinstance(record, dict) else None
        raise UserError(f"{file} has schema {schema!r}, this version of marlab reads schema {SCHEMA}.")
    for name, (right, expected) in _FIELDS.items():
        if name in record and not right(record[name]):
            raise UserError(f"{file}: '{name}' is {str(record[name])[:40]!r}, expected {expected}.")
    return {**new_record(record.get("world", "unknown"), path.name), "created": "", **record}


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _list_of(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(right, value))


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _attempt(value: Any) -> bool:
    return _table(value) and isinstance(value.get("seconds") or 0.0, int | float)


def _stage(value: Any) -> bool:
    return _table(value) and isinstance(value.get("name"), str | None)


_TEXTS = _list_of(lambda value: isinstance(value, str))
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "status": (lambda value: value in STATUSES, f"one of {', '.join(STATUSES)}"),
    **dict.fromkeys(("world", "created"), (lambda value: isinstance(value, str), "a text")),
    **dict.fromkeys(
        ("reason", "command", "config_hash", "config_type", "started", "ended", "parent", "group", "goal",
         "preset", "root"), (_text_or_none, "a text or nothing"),
    ),
    **dict.fromkeys(("tags", "inferred"), (_TEXTS, "a list of texts")),
    **dict.fromkeys(("versions", "host", "results"), (_table, "a table")),
    "judged_by": (is_judged, "a table of results, metric and better"),
    "attempts": (_list_of(_attempt), "a list of tables"),
    "stages": (_list_of(_stage), "a list of tables whose names are texts"),
    "total": (lambda value: value is None or (type(value) is int and value >= 0), "a number of steps or nothing"),
    "verdict": (is_stored, "at most three sentences as keys and numbers"),
}  # fmt: skip


# --- what a record says about its surroundings --------------------------------------------------------------


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """What computed: the interpreter, this package with its commit, and what it stands on."""
    found = {"python": platform.python_version()}
    for package in ("marlab", "torch", "numpy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            module = sys.modules.get(package)
            found[package] = getattr(module, "__version__", "unknown")
    found["commit"] = _commit()
    return found


def _commit() -> str:
    """The commit of the source tree that runs, "+" if it was changed, "unknown" outside of git."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=10, check=True
        )
        dirty = subprocess.run(
            [*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "")


def host() -> dict[str, Any]:
    import torch

    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    known: dict[str, Any] = {"platform": platform.platform(), "cpu": cpu, "cores": os.cpu_count(), "gpu": gpu}
    return {**known, "threads": torch.get_num_threads(), "device": None}
