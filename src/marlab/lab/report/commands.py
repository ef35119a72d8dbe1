"""`marlab runs` and `marlab note`: flags in, functions of this package called, words out."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.report.facts import read_all
from marlab.lab.report.note import write_note
from marlab.lab.report.parts import without_marks
from marlab.lab.report.record import write_all
from marlab.lab.report.runs_table import RunFilter, run_lines, run_rows
from marlab.lab.report.sorting import COLUMNS, sort_runs, values_by
from marlab.lab.runs.records import abandon_run, find_run, plan_run
from marlab.lab.text import are, clean


@dataclass(frozen=True)
class RunsArgs:
    """List runs, plan one or give one up; `marlab compare` shows them side by side."""

    world: str | None = None
    """Only runs of this world."""
    status: Literal["planned", "running", "finished", "interrupted", "failed", "abandoned"] | None = None
    """Only runs in this state."""
    tag: str | None = None
    """Only runs with this tag; with --plan, the tag to give."""
    group: str | None = None
    """Only runs of this group; with --plan, the group to give."""
    find: str | None = None
    """Only runs with this text in their name, goal, group, tags, command, preset or reason."""
    sort: str = "created"
    """A column (created, ended, name, status, duration, ...), or a result or metric by its name or its end, for
    example survival."""
    reverse: bool = False
    """Largest, latest or last in the alphabet first."""
    plan: str | None = None
    """Write down a run WORLD/NAME that is to be made."""
    abandon: str | None = None
    """Mark a run as given up; needs --reason."""
    goal: str | None = None
    """With --plan: what the run is for, in one line."""
    reason: str | None = None
    """With --plan or --abandon: why."""
    root: Path = Path("runs")
    """Folder of all runs."""

    def __post_init__(self) -> None:
        asked = [name for name in ("plan", "abandon") if getattr(self, name) is not None]
        if len(asked) > 1:
            raise UserError(f"--{asked[0]} and --{asked[1]} cannot be asked for together.")
        if self.goal is not None and self.plan is None:
            raise UserError("--goal belongs to --plan; to filter the list by a goal use --find.")
        if self.reason is not None and self.plan is None and self.abandon is None:
            raise UserError("--reason belongs to --plan or --abandon.")
        if self.abandon is not None and not (self.reason or "").strip():
            raise UserError("--abandon needs --reason: say in one line why the run is given up.")


@dataclass(frozen=True)
class NoteArgs:
    """Write and show the lab note of a run, or make the training record of all runs."""

    run: str | None = None
    """The run: a path, world/name, or a name that only one run has."""
    all: bool = False
    """Make the notes of all runs and the training record RECORD.md."""
    root: Path = Path("runs")
    """Folder of all runs."""

    def __post_init__(self) -> None:
        if self.all == (self.run is not None):
            raise UserError("marlab note takes one run (a path, world/name or a unique name), or --all.")


def runs_command(argv: Sequence[str]) -> int:
    """`marlab runs`."""
    args = parse(RunsArgs, argv, prog="marlab runs")
    if args.plan is not None:
        tags = () if args.tag is None else (args.tag,)
        info = plan_run(args.plan, args.goal, args.reason, tags, args.group, args.root)
        print(clean(f"{info.id} is planned: {info.path}"))
    elif args.abandon is not None:
        info = abandon_run(find_run(args.abandon, args.root), str(args.reason))
        print(clean(f"{info.id} is abandoned: {info.reason}"))
    else:
        _list(args)
    return 0


def _list(args: RunsArgs) -> None:
    runs, broken = read_all(args.root)
    wanted = RunFilter(args.world, args.status, args.tag, args.group, args.find)
    accepted = [info for info in runs if wanted.accepts(info)]
    values = None if args.sort in COLUMNS else values_by(accepted, args.sort)
    chosen = sort_runs(accepted, args.sort, args.reverse, values)
    if chosen:
        terminal = sys.stdout.isatty()  # into a file or a pipe nothing is cut
        width = shutil.get_terminal_size().columns if terminal else None
        colours = terminal and "NO_COLOR" not in os.environ
        print("\n".join(run_lines(run_rows(chosen, values), args.sort, width, colours)))
    else:
        matching = ", and none of them matches" if runs else ""
        print(clean(f"Below {args.root} {are(len(runs), 'run')}{matching}."))
    for item in broken:
        print(clean(f"marlab: {item.path} is unreadable: {item.reason}"), file=sys.stderr)


def note_command(argv: Sequence[str]) -> int:
    """`marlab note`."""
    args = parse(NoteArgs, argv, prog="marlab note", positional=("run",))
    return _note_all(args) if args.all else _note_one(args)


def _note_one(args: NoteArgs) -> int:
    path = find_run(str(args.run), args.root).path
    text = clean(without_marks(write_note(path))).strip("\n")
    if sys.stdout.isatty():  # into a file or a pipe goes the Markdown itself
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text, hyperlinks=False))
    else:
        print(text)
    _say_written(path / "note.md")
    return 0


def _note_all(args: NoteArgs) -> int:
    record, problems = write_all(args.root)
    _say_written(record)
    for problem in problems:
        print(f"marlab: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _say_written(path: Path) -> None:
    print(f"marlab: wrote {path}", file=sys.stderr)  # not into the note that may be piped on
