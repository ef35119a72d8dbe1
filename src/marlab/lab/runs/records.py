"""Reading run directories that other processes own: listing, finding, planning and abandoning runs."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.runs.files import LEFTOVER, read_table, write_json
from marlab.lab.runs.folders import run_folders
from marlab.lab.runs.judged import Judged, judged
from marlab.lab.runs.lock import Lock
from marlab.lab.runs.record import new_record, now, read_record
from marlab.lab.runs.run import NAME, UNWRITTEN
from marlab.lab.text import are


@dataclass(frozen=True)
class RunInfo:
    """run.json of a run, with its *effective* status: a run whose process died is not running."""

    path: Path
    world: str
    name: str
    status: str  # planned | running | finished | interrupted | failed | abandoned
    reason: str | None
    kind: str | None  # what the config class calls it, such as "hunt/ppo": says who can open it
    command: str | None
    config_hash: str | None
    config_type: str | None
    seed: int | None
    versions: dict[str, str]
    host: dict[str, Any]
    created: str | None
    started: str | None
    ended: str | None
    attempts: list[dict[str, Any]]
    parent: str | None
    tags: list[str]
    group: str | None
    goal: str | None
    preset: str | None
    judged_by: dict[str, Any] | None
    inferred: list[str]
    stages: list[dict[str, Any]]
    total: int | None  # steps of the whole training; None where that is not known
    results: dict[str, Any]
    verdict: list[dict[str, Any]]
    root: str | None  # the way to the folder of all runs, of a run that does not lie there

    @property
    def id(self) -> str:
        return f"{self.world}/{self.name}"

    @property
    def address(self) -> str:
        """What finds it: world/name where it lies at its place, else its path."""
        return self.id if self.path.parts[-2:] == (self.world, self.name) else str(self.path)

    def config(self) -> dict[str, Any]:
        """config.json, empty for a run that never started."""
        path = self.path / "config.json"
        return read_table(path, UserError) if path.exists() else {}

    @property
    def judged(self) -> Judged:
        """What it is judged by."""
        return judged(self.judged_by)

    def seconds(self) -> float | None:
        """Time spent working, over all attempts that ended properly; None if there is none."""
        spent = [a["seconds"] for a in self.attempts if a.get("seconds") is not None]
        return sum(spent) if spent else None


def read_run(path: Path) -> RunInfo:
    """The record of the run at `path`."""
    record = read_record(path)
    if record["status"] == "running" and not Lock(path / "lock").is_held():
        if (path / UNWRITTEN).exists():
            record.update(status="failed", reason="its end could not be written down; is the disk full?")
        else:
            record.update(status="interrupted", reason="the process died")
    known: dict[str, Any] = {f.name: record.get(f.name) for f in fields(RunInfo) if f.name != "path"}
    return RunInfo(path, **known)


def find_run(text: str, root: Path = Path("runs")) -> RunInfo:
    """A run by its path, by `world/name`, or by a name that only one run has."""
    for candidate in (Path(text), root / text):
        if (candidate / "run.json").is_file():
            return read_run(candidate)
    runs: list[RunInfo] = []
    for path in run_folders(root):
        with suppress(UserError):  # others that cannot be read are no reason not to find this one
            runs.append(read_run(path))
    runs.sort(key=lambda r: (str(r.created), r.id))
    named = [r for r in runs if text in (r.name, r.id)]
    if len(named) == 1:
        return named[0]
    if named:
        raise UserError(f"'{text}' names {len(named)} runs: {', '.join(r.address for r in named)}; say which.")
    names = [*(r.id for r in runs), *(r.name for r in runs)]
    near = difflib.get_close_matches(text, names, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; below {root} {are(len(runs), 'run')}."
    raise UserError(f"There is no run '{text}'{hint}")


def plan_run(
    run_id: str, goal: str | None, reason: str | None, tags: Sequence[str] = (), group: str | None = None,
    root: Path = Path("runs"),
) -> RunInfo:  # fmt: skip
    """Write down a run that is to be made; starting it later with the same name keeps goal, tags and group."""
    world, _, name = run_id.partition("/")
    if not NAME.fullmatch(world) or not NAME.fullmatch(name):
        raise UserError(f"'{run_id}' does not name a run, expected world/name, for example fish/wider-net.")
    path = root / world / name
    if path.exists() and not (path.is_dir() and all(LEFTOVER.fullmatch(entry.name) for entry in path.iterdir())):
        raise UserError(f"{path} exists already.")
    record = new_record(world, name)
    record.update(goal=goal, reason=reason, tags=sorted(set(tags)), group=group)
    write_json(path / "run.json", record)
    return read_run(path)


def abandon_run(info: RunInfo, reason: str) -> RunInfo:
    """Mark a run as given up, with the reason; its files stay."""
    if info.status == "running":
        raise UserError(f"{info.id} is running; stop it before you abandon it.")
    record = read_record(info.path)
    record.update(status="abandoned", reason=reason, ended=record["ended"] or now())
    write_json(info.path / "run.json", record)
    return read_run(info.path)
