"""What is known about runs, read with care: other programs, crashes and people leave odd files behind."""

from __future__ import annotations

import importlib
import json
import math
import os
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marlab.lab.config import defaults_of, flatten
from marlab.lab.errors import UserError
from marlab.lab.runs.folders import run_folders
from marlab.lab.runs.metrics import tail_metrics
from marlab.lab.runs.records import RunInfo, read_run
from marlab.lab.stats import Measured, measured

UNKNOWN = "unknown"
DONE, UNFINISHED = ("finished",), ("running", "interrupted", "failed")

_TRACES = ("config.json", "metrics.jsonl", "checkpoints", "tb", "log.txt", "note.md")


@dataclass(frozen=True)
class Unreadable:
    """A directory that should be a run and is not."""

    path: Path
    reason: str


def read_all(root: Path) -> tuple[list[RunInfo], list[Unreadable]]:
    """All runs below `root` by world and name, and every directory that looks like a run and cannot be read."""
    found: list[RunInfo] = []
    broken: list[Unreadable] = []
    for path in run_folders(root):
        try:
            found.append(read_run(path))
        except UserError as error:
            broken.append(Unreadable(path, str(error)))
    return found, sorted([*broken, *headless(root)], key=lambda item: item.path)


def headless(root: Path) -> list[Unreadable]:
    """Folders at the place of a run that hold traces of one, and no record."""
    paths = [p for p in sorted(root.glob("*/*")) if looks_like_a_run(p) and not (p / "run.json").exists()]
    return [Unreadable(path, "there is no run.json") for path in paths]


def looks_like_a_run(path: Path) -> bool:
    """Whether a folder holds traces of a run."""
    return path.is_dir() and not path.name.startswith(".") and any((path / trace).exists() for trace in _TRACES)


def config_of(info: RunInfo) -> dict[str, Any]:
    """The resolved config with dotted keys; empty for a run that never started."""
    stored = info.config()
    if not isinstance(stored, dict):
        raise UserError(f"{info.path / 'config.json'} does not hold a table of parameters.")
    return flatten(stored)


def defaults_of_run(info: RunInfo) -> dict[str, Any] | None:
    """Today's defaults of the run's config with dotted keys; None where they cannot be known.

    Only marlab's own modules are looked at: a record from a stranger must not name what gets imported.
    """
    module, _, qualname = (info.config_type or "").partition(":")
    if not module.startswith("marlab."):
        return None
    try:
        found: Any = importlib.import_module(module)
        for name in qualname.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return None
    return flatten(defaults_of(found)) if isinstance(found, type) and is_dataclass(found) else None


def is_inferred(info: RunInfo, key: str) -> bool:
    """True if the value of a dotted key was concluded, not recorded."""
    return any(key == name or key.startswith(name + ".") for name in info.inferred)


def results_of(info: RunInfo) -> dict[str, Measured]:
    return {name: measured(stored) for name, stored in info.results.items()}


def last_metrics(info: RunInfo, records: int = 200) -> dict[str, tuple[int, float]]:
    """metric -> (step, value): the last number of each metric among the last records, by name."""
    latest: dict[str, tuple[int, float]] = {}
    for row in tail_metrics(info.path / "metrics.jsonl", records):
        for name, value in row.items():
            if name not in ("step", "time") and isinstance(value, int | float) and not isinstance(value, bool):
                latest[name] = (row["step"], value)
    return dict(sorted(latest.items()))


def parent_of(info: RunInfo) -> RunInfo | None:
    """The run that `info` names as its parent, if it is there and can be read."""
    if info.parent is None:
        return None
    root = info.path / info.root if info.root else info.path.absolute().parent.parent
    try:
        return read_run(Path(os.path.normpath(root / info.parent)))
    except UserError:
        return None


def parameter(value: Any) -> str:
    """A parameter exactly as it was set, not rounded."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def when(stamp: str | None) -> str:
    """A stored time as `2026-11-15 12:54 UTC`; texts that are no time are shown as they are."""
    if stamp is None:
        return UNKNOWN
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    if moment.tzinfo is None:
        return f"{moment:%Y-%m-%d %H:%M} (no time zone)"
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def duration(seconds: float | None) -> str:
    """Seconds as people say them."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def file_size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
