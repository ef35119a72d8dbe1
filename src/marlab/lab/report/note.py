"""The lab note of a run: what was asked, what happened, what came out, in one Markdown file.

The note has three parts made from the run directory (summary, results, details); everything else in the file belongs
to the person who writes objectives, insights, limitations and next steps, and is kept when the note is made again.
Nothing is guessed: what the run directory does not say is called unknown.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from marlab.lab.config import diff
from marlab.lab.errors import UserError
from marlab.lab.report.facts import (
    UNKNOWN,
    config_of,
    defaults_of_run,
    duration,
    file_size,
    is_inferred,
    last_metrics,
    parameter,
    parent_of,
    results_of,
    when,
)
from marlab.lab.report.markdown import bullets, code, fence, image, link, plain, spans, table
from marlab.lab.report.parts import merge, read_together, write_together
from marlab.lab.runs.files import read_table, read_text
from marlab.lab.runs.folders import place_of
from marlab.lab.runs.records import RunInfo, read_run
from marlab.lab.stats import Measured, show
from marlab.lab.verdict import texts

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp")
MOST_METRICS = 40
MOST_ROWS = 60
MOST_WEIGHTS = 12

LAYOUT = """\
{summary}

## Objectives

<!-- What should this run show? -->

{results}

## Insights

<!-- What was learnt, and how sure is it? -->

## Limitations

<!-- What does this run not show? -->

## Next steps

<!-- What follows from it? -->

{details}
"""


def write_note(run_path: Path) -> str:
    """Make the lab note of a run, write it to note.md and return it; what a person wrote in it stays."""
    info = read_run(run_path)
    path = run_path / "note.md"
    parts = {"summary": _summary(info), "results": _results(info), "details": _details(info)}
    text = merge(read_together(path), parts, LAYOUT, f"{info.id} {info.created}")
    write_together(path, text)
    return text


# --- summary ------------------------------------------------------------------------------------------------


def _summary(info: RunInfo) -> str:
    rows = [
        ("Status", plain(info.status) + (f": {plain(info.reason)}" if info.reason else "")),
        ("Goal", _given(info.goal)), ("Group", _given(info.group)),
        ("Tags", ", ".join(code(tag) for tag in info.tags) or "none"), ("Parent run", _parent_link(info)),
        ("Preset", code(info.preset) if info.preset else "none"),
        ("Seed", UNKNOWN if info.seed is None else code(str(info.seed))), ("Created", plain(when(info.created))),
    ]  # fmt: skip
    sections = [f"# {plain(info.id)}", *_verdict(info), table(["", ""], rows), "## Command"]
    sections.append(fence(info.command, "sh") if info.command else "The command is unknown.")
    sections += ["## Attempts", _attempts(info)]
    return "\n\n".join(sections)


def _verdict(info: RunInfo) -> list[str]:
    """What came of the run, first of all: a paragraph, or nothing where nothing was judged."""
    sentences = texts(info.verdict, str(info.path))
    return [f"**Verdict.** {' '.join(map(spans, sentences))}"] if sentences else []


def _given(text: str | None) -> str:
    return plain(text) if text else "none given"


def _parent_link(info: RunInfo) -> str:
    if info.parent is None:
        return "none"
    parent = parent_of(info)
    if parent is None or not re.fullmatch(r"[\w.-]+/[\w.-]+", info.parent):
        return code(info.parent)
    return link(info.parent, place_of(parent.path / "note.md", info.path))


def _attempts(info: RunInfo) -> str:
    if not info.attempts:
        return "The run was not started."
    rows = []
    for number, attempt in enumerate(info.attempts, 1):
        status, reason, seconds = (attempt.get(key) for key in ("status", "reason", "seconds"))
        if status == "running":  # a process that died could not write its end; the run's effective status tells
            status, reason = info.status, info.reason
        ended = attempt.get("ended")
        ended_text = "not yet" if ended is None and status == "running" else when(_text(ended))
        rows.append([
            str(number), plain(when(_text(attempt.get("started")))), plain(ended_text),
            "not yet" if seconds is None and status == "running" else duration(seconds),
            plain(_text(status) or UNKNOWN), plain(_text(reason) or ""),
        ])  # fmt: skip
    total = info.seconds()
    told = "" if len(rows) == 1 else f"\n\nAll attempts that ended properly took {duration(total)} together."
    return table(["#", "started", "ended", "duration", "status", "reason"], rows) + told


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


# --- results ------------------------------------------------------------------------------------------------


def _results(info: RunInfo) -> str:
    sections = ["## Results", results_table(results_of(info))]
    if not info.results:
        sections.append(_last_values(info))
    sections += ["## Stages", _stages(info)]
    sections += _tables(info.path)
    sections += ["## Against the parent run", _against_parent(info)]
    sections += ["## Figures", _gallery(info.path, "figures"), "## Media", _gallery(info.path, "media")]
    if (info.path / "eval").is_dir():
        sections += ["## Evaluations", _gallery(info.path, "eval")]
    return "\n\n".join(section for section in sections if section)


def results_table(results: dict[str, Measured]) -> str:
    """Results with interval, unit and remark."""
    if not results:
        return "No results are recorded."
    rows = [
        [code(name), plain(show(r.value)), r.interval(), plain(r.unit or ""), plain(r.note or "")]
        for name, r in results.items()
    ]
    return table(["result", "value", "interval", "unit", "remark"], rows)


def _last_values(info: RunInfo) -> str:
    latest = last_metrics(info)
    if not latest:
        return ""
    rows = [[code(name), show(value), str(step)] for name, (step, value) in list(latest.items())[:MOST_METRICS]]
    more = len(latest) - len(rows)
    told = f"\n\n{more} more are in {link('metrics.jsonl', 'metrics.jsonl')}." if more else ""
    return "Last logged values:\n\n" + table(["metric", "value", "step"], rows) + told


def _stages(info: RunInfo) -> str:
    if not info.stages:
        return "No stages are recorded."
    names = {"name": "stage", "lr": "learning rate", "first_step": "first step", "last_step": "last step"}
    columns = [key for key in names if key == "name" or key == "lr" or any(key in s for s in info.stages)]
    columns += list(dict.fromkeys(key for stage in info.stages for key in stage if key not in names))
    rows = [[plain(_stage_value(stage, key)) for key in columns] for stage in info.stages]
    return table([names.get(key) or plain(key.replace("_", " ")) for key in columns], rows)


def _stage_value(stage: dict[str, Any], key: str) -> str:
    value = stage.get(key)
    if value is None:
        return UNKNOWN if key in ("name", "lr") else ""
    return parameter(value) if isinstance(value, list | dict) else show(value)


def _tables(run_path: Path) -> list[str]:
    """What the run left as CSV files in tables/, each under its name."""
    sections: list[str] = []
    for file in (p for p in files_in(run_path / "tables") if p.suffix == ".csv"):
        try:
            header, *rows = csv.reader(io.StringIO(read_text(file), newline=""))
        except (OSError, ValueError, csv.Error):
            continue  # empty, or written by somebody else
        shown = [[plain(cell) for cell in (row + [""] * len(header))[: len(header)]] for row in rows[:MOST_ROWS]]
        more = (
            f"\n\nAll {len(rows)} rows are in {link(file.name, f'tables/{file.name}')}."
            if len(rows) > MOST_ROWS
            else ""
        )
        sections += [f"## {plain(file.stem.capitalize())}", table([plain(cell) for cell in header], shown) + more]
    return sections


def _against_parent(info: RunInfo) -> str:
    if info.parent is None:
        return "This run has no parent."
    parent = parent_of(info)
    if parent is None:
        return f"The parent run {code(info.parent)} cannot be read here, so what differs from it is unknown."
    try:
        changed = config_rows(config_of(parent), config_of(info))
    except UserError as error:
        return f"What differs from {code(info.parent)} is unknown: {plain(str(error))}"
    title = f"{code(info.parent)} and this run have the same parameters."
    if changed:
        title = table(["parameter", "parent", "this run"], [[code(k), code(a), code(b)] for k, a, b in changed])
    pairs = result_rows(results_of(parent), results_of(info))
    rows = [[code(name), inline_result(a), inline_result(b), change] for name, a, b, change in pairs]
    told = table(["result", "parent", "this run", "difference"], rows) if rows else "Neither has recorded results."
    return f"{title}\n\n{told}"


def config_rows(a: dict[str, Any], b: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(key, value in a, value in b) as texts, wherever two flat configs differ; a missing key is "not set"."""
    return [
        (key, parameter(x) if key in a else "not set", parameter(y) if key in b else "not set")
        for key, x, y in diff(a, b)
    ]


def result_rows(
    a: dict[str, Measured], b: dict[str, Measured]
) -> list[tuple[str, Measured | None, Measured | None, str]]:
    """(name, result in a, result in b, b - a as text) for all results of either."""
    rows = []
    for name in [*a, *(name for name in b if name not in a)]:
        x, y = a.get(name), b.get(name)
        before, after = (None if side is None else side.number for side in (x, y))
        change = f"{after - before:+.4g}" if before is not None and after is not None else ""
        rows.append((name, x, y, change))
    return rows


def inline_result(result: Measured | None) -> str:
    """A result with its interval and unit as Markdown on one line."""
    if result is None:
        return "not recorded"
    return " ".join(part for part in (plain(show(result.value)), result.interval(), plain(result.unit or "")) if part)


def _gallery(run_path: Path, folder: str) -> str:
    """Pictures as pictures, everything else (films, pages, tables) as links."""
    files = [p for p in files_in(run_path / folder) if not p.name.startswith(".")]
    files = [p for p in files if p.suffix != ".svg" or p.with_suffix(".png") not in files]  # the same as pixels
    if not files:
        return "None."
    pictures, others = [], []
    for file in files:
        path = file.relative_to(run_path).as_posix()
        name = file.relative_to(run_path / folder).as_posix()
        if file.suffix.lower() in PICTURES:
            pictures.append(image(Path(name).with_suffix("").as_posix(), path))
        else:
            others.append(f"{link(name, path)} ({file_size(file.stat().st_size)})")
    return "\n\n".join([*pictures, *([bullets(others)] if others else [])])


def files_in(folder: Path) -> list[Path]:
    """Files below a folder in the order people count: iter_2 before iter_10."""
    return sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: _natural(p.relative_to(folder)))


def _natural(path: Path) -> list[tuple[int, int, str]]:
    words = re.findall(r"\d+|\D+", path.as_posix())
    return [(0, int(w), w) if w.isdecimal() and w.isascii() else (1, 0, w) for w in words]


# --- details ------------------------------------------------------------------------------------------------


def _details(info: RunInfo) -> str:
    sections = ["## Parameters", _parameters(info), "## Weights", _weights(info.path), "## Logs", _logs(info.path)]
    sections += ["## Versions", _pairs(info.versions, ("marlab", "python", "torch", "commit"))]
    sections += ["## Machine", _pairs(info.host, ("platform", "cpu", "cores", "device"))]
    return "\n\n".join(sections)


def _parameters(info: RunInfo) -> str:
    try:
        values = config_of(info)
    except UserError as error:
        return f"The parameters are unknown: {plain(str(error))}"
    if not values:
        return "No parameters are recorded."
    hash_line = f"Config hash: {code(info.config_hash) if info.config_hash else UNKNOWN}."
    defaults = defaults_of_run(info)
    if defaults is None:
        told = "The defaults of this config are unknown here, so all parameters are listed together."
        return "\n\n".join([hash_line, told, _parameter_table(info, values, values)])
    changed = [key for key in values if key not in defaults or defaults[key] != values[key]]
    same = [key for key in values if key not in changed]
    sections = [hash_line, "All parameters have their default."]
    if changed:
        sections[1] = "Different from today's defaults:\n\n" + _parameter_table(info, values, changed, defaults)
    if same:
        sections.append("At their default:\n\n" + _parameter_table(info, values, same))
    return "\n\n".join(sections)


def _parameter_table(
    info: RunInfo, values: dict[str, Any], keys: Iterable[str], defaults: dict[str, Any] | None = None
) -> str:
    header = ["parameter", "value", *(["default"] if defaults is not None else []), "remark"]
    rows = []
    for key in keys:
        row = [code(key), code(parameter(values[key]))]
        if defaults is not None:
            row.append(code(parameter(defaults[key])) if key in defaults else "none")
        rows.append([*row, "inferred, not recorded" if is_inferred(info, key) else ""])
    if not any(row[-1] for row in rows):
        return table(header[:-1], [row[:-1] for row in rows])
    return table(header, rows)


_FOR_TRAINING = re.compile(r"(state|memory|warm)_\d|.*_halfway\.")
"""Files that a training goes on from and nobody plays with (`marlab.lab.runs.split`)."""


def weights_in(run_path: Path) -> tuple[list[Path], Path | None]:
    """The newest files of weights that play, the best one among them, and which one that is."""
    files = _all_weights(run_path)
    best = _best(run_path / "checkpoints" / "best.json")
    shown = files[-MOST_WEIGHTS:]
    if best in files and best not in shown:
        shown = [best, *shown]
    return shown, best


def _all_weights(run_path: Path) -> list[Path]:
    return [
        p for p in files_in(run_path / "checkpoints")
        if p.suffix in (".pt", ".pth", ".ckpt", ".safetensors") and not _FOR_TRAINING.match(p.name)
    ]  # fmt: skip


def _weights(run_path: Path) -> str:
    shown, best = weights_in(run_path)
    if not shown:
        return "None are saved."
    items = []
    for file in shown:
        path = file.relative_to(run_path).as_posix()
        mark = ", best score" if file == best else ""
        items.append(f"{link(path, path)} ({file_size(file.stat().st_size)}{mark})")
    hidden = len(_all_weights(run_path)) - len(shown)
    told = f"{hidden} earlier ones are in {link('checkpoints/', 'checkpoints/')}.\n\n" if hidden else ""
    return told + bullets(items)


def _best(path: Path) -> Path | None:
    try:
        return path.parent / str(read_table(path, UserError)["file"])
    except (UserError, KeyError):
        return None


def _logs(run_path: Path) -> str:
    meaning = {
        "log.txt": "what was printed", "metrics.jsonl": "all metrics, one record a line",
        "tb": "the same for TensorBoard", "config.json": "resolved parameters", "run.json": "record of the run",
    }  # fmt: skip
    there = [name for name in meaning if (run_path / name).exists()]
    return bullets(f"{link(name, name)}: {meaning[name]}" for name in there)


def _pairs(values: dict[str, Any], expected: tuple[str, ...]) -> str:
    keys = [*expected, *(key for key in values if key not in expected)]
    rows = [[plain(key), UNKNOWN if values.get(key) is None else code(parameter(values[key]))] for key in keys]
    return table(["", ""], rows)
