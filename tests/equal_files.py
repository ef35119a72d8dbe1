"""Whether two folders hold the same work: everything that a command computed and left, but not when it did so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.testing import assert_same

TIMES = (
    "time", "charts/SPS", "seconds", "cpu_s", "worker", "peak_mb", "attempts", "created", "generated_at", "timestamp",
    "started", "ended", "host", "commit", "start_s", "ms", "CPU s",
)  # fmt: skip
"""How the names of values begin that tell when, where and how fast, which is what differs; so does a page's "mark"."""
NOT_COMPARED = {"log.txt", "lock", "note.md"}
"""What tells how often a run was interrupted; a note is made from the record, which is compared."""
EVENTS = "events.out.tfevents."


def differences(ours: Path, theirs: Path) -> list[str]:
    """What is not equal, a line for each file; empty if all is."""
    mine, other = ({_known_as(name): folder / name for name in _files(folder)} for folder in (ours, theirs))
    found = [f"only after the kill: {name}" for name in sorted(mine.keys() - other.keys())]
    found += [f"missing after the kill: {name}" for name in sorted(other.keys() - mine.keys())]
    for name in sorted(mine.keys() & other.keys()):
        try:
            _compare(mine[name], other[name])
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    return found


def _known_as(name: str) -> str:
    """A memory that was saved twice at one step has the second of its two names."""
    return name.replace("_later.pt", ".pt")


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.name.startswith(EVENTS):  # one more for each process
            yield path.parent.relative_to(folder).as_posix()
        elif path.is_file() and path.name not in NOT_COMPARED:
            yield name


def _compare(ours: Path, theirs: Path) -> None:
    if ours.is_dir():
        return assert_same(_curves(ours), _curves(theirs))
    if ours.read_bytes() == theirs.read_bytes():
        return None
    read = READERS.get(ours.name) or READERS.get(ours.suffix)
    assert read is not None, "other bytes"
    return assert_same(read(ours), read(theirs), ours.name)


def _curves(folder: Path) -> dict[str, dict[int, float]]:
    """Tag -> step -> value, as TensorBoard shows it: a process that goes on takes back what came after its start."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    found: dict[str, dict[int, float]] = {}
    for file in sorted(folder.glob(f"{EVENTS}*"), key=lambda path: path.stat().st_mtime_ns):
        for event in EventFileLoader(str(file)).Load():
            if event.HasField("session_log"):
                for values in found.values():
                    for step in [step for step in values if step >= event.step]:
                        del values[step]
            for value in event.summary.value:
                if not value.tag.startswith(TIMES):
                    found.setdefault(value.tag, {})[event.step] = value.tensor.float_val[0]
    return {tag: found[tag] for tag in sorted(found) if found[tag]}


def _json(path: Path) -> Any:
    return untimed(json.loads(path.read_text()))


def _lines(path: Path) -> list[Any]:
    """The lines of a file that is appended to; where they have steps, those that a resumed process wrote again once."""
    lines = []
    for line in path.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:  # cut by a kill: every reader leaves it out
            continue
    stepped = all("step" in line or "resume" in line for line in lines)
    rows = [untimed(row) for row in (read_metrics(path) if stepped else lines)]
    return rows if stepped else sorted(rows, key=str)  # worlds finish in any order


def _checkpoint(path: Path) -> Any:
    """What a checkpoint holds; of a memory that it names by name and checksum only the name: its file has a date."""
    state = load_checkpoint(path).state
    if isinstance(state, dict) and isinstance(state.get("memory"), list | tuple) and len(state["memory"]) == 2:
        state = {**state, "memory": _known_as(state["memory"][0])}
    return state


def _table(path: Path) -> Any:
    """A table without its times; the parts in which it was written do not count."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = table.select([name for name in table.column_names if not name.startswith(TIMES)]).to_pydict()
    if "meta" in columns:  # of a world: one JSON text
        columns["meta"] = [untimed(json.loads(text)) for text in columns["meta"]]
    return columns


def _runs(path: Path) -> set[str]:
    """The list of runs elsewhere; a line that leads to none is nobody's, and one may stand twice."""
    return {line for line in path.read_text().splitlines() if (path.parent / line / "run.json").exists()}


_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?|\d+(\.\d+)? ?(ms|s|min|h)\b")


_SCRATCH = re.compile(r"marlab-(task|learner)-\w+")
"""Folders for a task's temporary files."""


def _text(path: Path) -> list[str]:
    """The lines of a page without dates and durations, nor the columns of its tables whose heads are such."""
    lines, timed = [], list[int]()
    for line in _CLOCK.sub("", path.read_text()).splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            timed = []
        elif not timed:
            timed = [place for place, cell in enumerate(cells) if cell.startswith(TIMES)] or [-1]
        if not re.fullmatch(r"<td>[\d.]+</td>", line.strip()):  # a page's numbers are those of a file beside it
            lines.append("|".join(cell for place, cell in enumerate(cells) if place not in timed))
    return lines


READERS = {
    ".pt": _checkpoint, ".json": _json, ".jsonl": _lines, ".parquet": _table, ".md": _text, ".html": _text,
    ".csv": _text, "elsewhere.txt": _runs,
}  # fmt: skip


def untimed(value: Any) -> Any:
    """The same without times."""
    if isinstance(value, str):
        return _SCRATCH.sub("", _CLOCK.sub("", value.replace(" --resume", "")))  # the command of a run
    if isinstance(value, dict):
        return {k: untimed(v) for k, v in value.items() if not str(k).startswith(TIMES) and k != "mark"}
    return [untimed(item) for item in value] if isinstance(value, list) else value
