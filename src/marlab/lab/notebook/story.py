"""What there is to tell about a run, gathered for its page and its entry in the index; every text in every language."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.notebook.panels import called, package_of
from marlab.lab.notebook.words import LANGUAGES
from marlab.lab.report.facts import config_of, defaults_of_run, is_inferred, parameter, results_of
from marlab.lab.report.note import PICTURES, files_in, weights_in
from marlab.lab.report.parts import own_text, read_together
from marlab.lab.runs.records import RunInfo
from marlab.lab.stats import Measured
from marlab.lab.verdict import texts

Said = dict[str, str]
"""Language -> text."""
FILMS = (".mp4", ".webm", ".gif")
LONGEST_LOG = 6_000
"""Letters of a log's end that a page shows."""
MOST_HASHED = 256_000_000
"""Bytes of one weights file whose hash a page tells."""


def same(text: str) -> Said:
    return dict.fromkeys(LANGUAGES, text)


def verdict(info: RunInfo) -> list[Said]:
    """The verdict, sentence by sentence."""
    said = {language: texts(info.verdict, str(info.path), language) for language in LANGUAGES}
    return [{language: said[language][i] for language in LANGUAGES} for i in range(len(info.verdict))]


def name_of(info: RunInfo, name: str, tables: str = "METRICS") -> Said:
    """What people call a result, a metric or a file (tables: CAPTIONS) of this run."""
    package = package_of(info)
    return {language: called(package, name, tables, language) or _plain_name(name) for language in LANGUAGES}


def _plain_name(name: str) -> str:
    return name.replace("_", " ").strip()


@dataclass(frozen=True)
class Result:
    """One result, named for people."""

    name: str
    said: Said
    value: Measured
    key: bool  # the one that the run is judged by


def results(info: RunInfo) -> list[Result]:
    """All results, the one that counts first."""
    found = results_of(info)
    key = info.judged.key({name: r for name, r in found.items() if r.number is not None})
    rows = [Result(name, name_of(info, name), value, name == key) for name, value in found.items()]
    return sorted(rows, key=lambda row: not row.key)


@dataclass(frozen=True)
class Picture:
    """A figure or a film with its caption."""

    path: Path
    caption: Said
    size: int


def pictures(info: RunInfo, folder: str, suffixes: Sequence[str]) -> list[Picture]:
    """Figures or films below a folder of the run; where one is there as drawing and as pixels, the drawing."""
    files = [file for file in files_in(info.path / folder) if file.suffix.lower() in suffixes]
    drawings = {file.with_suffix("") for file in files if file.suffix.lower() == ".svg"}
    kept = [file for file in files if file.suffix.lower() == ".svg" or file.with_suffix("") not in drawings]
    return [Picture(file, _caption(info, file), file.stat().st_size) for file in kept]


def _caption(info: RunInfo, file: Path) -> Said:
    """The caption that the world has for a file; files may begin with the run's name."""
    stem = file.stem.removeprefix(info.name).lstrip("_- ") or file.stem
    return name_of(info, stem, "CAPTIONS")


def figures(info: RunInfo) -> list[Picture]:
    return pictures(info, "figures", PICTURES)


def films(info: RunInfo) -> list[Picture]:
    return pictures(info, "media", FILMS)


@dataclass(frozen=True)
class Parameter:
    """One setting."""

    key: str
    value: str
    default: str | None  # None: not known
    changed: bool
    inferred: bool


def parameters(info: RunInfo) -> list[Parameter] | str:
    """All settings, those that differ from today's defaults first; a sentence where they cannot be read."""
    try:
        values = config_of(info)
    except UserError as error:
        return str(error)
    defaults = defaults_of_run(info) or {}
    rows = [
        Parameter(
            key, parameter(value), parameter(defaults[key]) if key in defaults else None,
            bool(defaults) and (key not in defaults or defaults[key] != value), is_inferred(info, key),
        )
        for key, value in values.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: not row.changed)


@dataclass(frozen=True)
class Weights:
    """A file of weights."""

    path: Path
    size: int
    best: bool
    sha256: str | None  # None: too large to read it for that


def weights(info: RunInfo, known: dict[str, Any]) -> list[Weights]:
    """Weights that play; hashes of files that have not changed are taken from `known`, and new ones put there."""
    files, best = weights_in(info.path)
    return [Weights(file, file.stat().st_size, file == best, _hash(file, known)) for file in files]


def _hash(file: Path, known: dict[str, Any]) -> str | None:
    stat = file.stat()
    if stat.st_size > MOST_HASHED:
        return None
    mark = f"{stat.st_size} {stat.st_mtime_ns}"
    stored = known.get(file.name)
    if isinstance(stored, list) and stored[0] == mark:
        return str(stored[1])
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    known[file.name] = [mark, digest]
    return digest


def own_words(info: RunInfo) -> str:
    """What a person wrote into the note: sections that are not empty."""
    text = re.sub("<!--.*?-->", "", own_text(read_together(info.path / "note.md") or ""), flags=re.DOTALL)
    sections = re.split(r"^(?=#{1,2} )", text.encode("utf-8", "replace").decode(), flags=re.MULTILINE)
    return "\n\n".join(
        part.strip() for part in sections if part.strip().partition("\n")[2].strip() or _no_heading(part)
    )


def _no_heading(part: str) -> bool:
    return bool(part.strip()) and not part.startswith("#")


def end_of_log(info: RunInfo) -> str:
    """The last lines that were printed."""
    path = info.path / "log.txt"
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        size = path.stat().st_size
        file.seek(max(0, size - LONGEST_LOG))
        text = file.read().decode("utf-8", "replace")
    return text if size <= LONGEST_LOG else text.partition("\n")[2]
