"""The training record of a whole folder of runs: done, unfinished, planned and abandoned, grouped by goal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from marlab.lab.errors import UserError
from marlab.lab.report.facts import DONE, UNFINISHED, Unreadable, duration, read_all, results_of, when
from marlab.lab.report.markdown import bullets, clean, code, link, plain, table
from marlab.lab.report.note import inline_result, write_note
from marlab.lab.report.parts import merge, read_together, write_together
from marlab.lab.runs.folders import place_of
from marlab.lab.runs.records import RunInfo

HEADLINES = 4  # results per run; the note has them all
LAYOUT = "{record}\n"

_SECTIONS = (
    ("Done", DONE, "Runs that came to their end."),
    ("Unfinished", UNFINISHED, "Runs that are at work, were stopped or failed; `--resume` continues a stopped one."),
    ("Planned", ("planned",), "Runs that are to be made."),
    ("Abandoned", ("abandoned",), "Runs that were given up, with the reason."),
)


def write_record(root: Path) -> Path:
    """Write `RECORD.md` into the folder of all runs; what a person wrote around it stays."""
    if not root.is_dir():
        raise UserError(f"{root} is not a folder of runs.")
    runs, broken = read_all(root)
    path = root / "RECORD.md"
    text = merge(read_together(path), {"record": record_text(root, runs, broken)}, LAYOUT, "training record")
    write_together(path, text)
    return path


def write_all(root: Path) -> tuple[Path, list[str]]:
    """Make the note of every run that can be read, then the record; also a sentence for each note that failed."""
    if not root.is_dir():
        raise UserError(f"{root} is not a folder of runs.")
    problems = []
    for info in read_all(root)[0]:
        try:
            write_note(info.path)
        except (UserError, OSError) as error:
            problems.append(f"The note of {info.id} could not be made: {error}")
    return write_record(root), problems


def record_text(root: Path, runs: Sequence[RunInfo], broken: Sequence[Unreadable]) -> str:
    """The record as Markdown; the order depends on the runs alone."""
    sections = ["# Training record", _overview(runs, broken)]
    for title, statuses, told in _SECTIONS:
        here = [info for info in runs if info.status in statuses]
        if here:
            sections += [f"## {title}", told, *_by_goal(root, here)]
    known = {status for _, statuses, _ in _SECTIONS for status in statuses}
    odd = [Unreadable(info.path, f"its status is '{info.status}'") for info in runs if info.status not in known]
    if odd or broken:
        rows = [[code(_shown(root, item.path)), plain(item.reason)] for item in [*broken, *odd]]
        sections += ["## Unreadable", table(["directory", "reason"], sorted(rows))]
    return "\n\n".join(sections)


def _overview(runs: Sequence[RunInfo], broken: Sequence[Unreadable]) -> str:
    if not runs and not broken:
        return "There are no runs yet."
    rows = []
    for world in sorted({info.world for info in runs}):
        here = [info for info in runs if info.world == world]
        counts = [sum(info.status in statuses for info in here) for _, statuses, _ in _SECTIONS]
        spent = sum(info.seconds() or 0.0 for info in here)
        rows.append([plain(world), *map(str, counts), duration(spent)])
    told = f"\n\n{len(broken)} {'directory' if len(broken) == 1 else 'directories'} cannot be read." if broken else ""
    return table(["world", "done", "unfinished", "planned", "abandoned", "time spent"], rows) + told


def _by_goal(root: Path, runs: Sequence[RunInfo]) -> list[str]:
    """Sections by goal and group; runs without a goal come last."""

    def heading(info: RunInfo) -> tuple[bool, str, str]:
        return info.goal is None, info.goal or "", info.group or ""

    sections = []
    ordered = sorted(runs, key=lambda info: (heading(info), info.created, info.id))
    for (_, goal, group), members in groupby(ordered, heading):
        title = plain(goal) if goal else "No goal given"
        sections.append(f"### {title}" + (f" ({plain(group)})" if group else ""))
        sections.append(bullets(_entry(root, info) for info in members))
    return sections


def _entry(root: Path, info: RunInfo) -> str:
    name = plain(info.id)
    if (info.path / "note.md").exists():
        name = link(info.id, _shown(root, info.path) + "/note.md")
    facts = [f"{name}: {plain(info.status)}"]
    if info.reason:
        facts[0] += f" ({plain(info.reason)})"
    if info.ended is not None:
        facts[0] += f", {plain(when(info.ended))}"
    if info.seconds() is not None:
        facts[0] += f", {duration(info.seconds())}"
    results = list(results_of(info).items())
    if results:
        told = "; ".join(f"{plain(name)} {inline_result(result)}" for name, result in results[:HEADLINES])
        facts.append(told + (f"; {len(results) - HEADLINES} more in the note" if len(results) > HEADLINES else ""))
    if info.command:
        facts.append(code(info.command))
    elif info.attempts:
        facts.append("command unknown")
    # Two blanks would break the line in Markdown, but editors strip them; a backslash stays.
    return "\\\n  ".join(facts)


def _shown(root: Path, path: Path) -> str:
    return clean(place_of(path, root))
