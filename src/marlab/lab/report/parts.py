"""Files that a program and a person write together.

What the program writes stands between marks, comments that Markdown does not show. Everything outside of the marks
belongs to the person and is kept byte by byte, wherever it stands and whatever it contains; only the marked parts
are made again. A mark carries the file's own key, so a part pasted from another note is the person's text, and a
digest of what the program wrote, so words typed into a marked part are noticed and moved to safety.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from marlab.lab.runs.files import read_bytes, replacing

HINT = "made by marlab, write outside of this part"
_BEGIN = re.compile(r"^<!-- marlab:([0-9a-f]{8}) ([a-z]+) ([0-9a-f]{8}):[^\r\n]*-->[ \t]*\r?\n", re.MULTILINE)


@dataclass(frozen=True)
class _Part:
    """A marked part that was found in a file."""

    name: str
    body: str
    edited: bool


def merge(old: str | None, parts: Mapping[str, str], first: str, key_text: str) -> str:
    """The file with all `parts` (name -> Markdown) made new and everything else as it was in `old`.

    `first` is the layout of a new file, with `{name}` lines where the parts go. `key_text` is any text that tells
    this file from others.
    """
    key = _digest(key_text)
    if not (old or "").strip():
        return "".join(
            _marked(key, line[1:-2], parts[line[1:-2]], "\n") if line[1:-2] in parts else line
            for line in first.splitlines(keepends=True)
        )
    assert old is not None
    key = _own_key(old, key)
    newline = "\r\n" if old.count("\r\n") * 2 > old.count("\n") else "\n"
    pieces = _split(old, key, parts)
    present = [piece.name for piece in pieces if isinstance(piece, _Part)]
    text, kept = [], []
    absent = [name for name in parts if name not in present]
    text += _block_of(absent, _before_first(parts, present), key, parts, newline)
    for piece in pieces:
        if isinstance(piece, str):
            text.append(piece)
            continue
        text.append(_marked(key, piece.name, parts[piece.name], newline))
        if piece.edited:
            kept.append(f"{newline}## Kept from the part '{piece.name}', which was edited{newline * 2}{piece.body}")
        text += _block_of(absent, _followers(parts, piece.name, present), key, parts, newline)
    return "".join(text + kept)


def read_together(path: Path) -> str | None:
    """A file that people edit: any line ends, any encoding (foreign bytes survive), None if there is none."""
    if not path.exists():
        return None
    return read_bytes(path).decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def write_together(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", "surrogateescape"))


def without_marks(text: str) -> str:
    """The text as a reader should see it, without the program's marks."""
    return re.sub(r"^<!-- /?marlab:[^\r\n]*-->[ \t]*\r?\n?", "", text, flags=re.MULTILINE)


def own_text(text: str) -> str:
    """What the person wrote: the text without the program's parts."""
    known = {match.group(2): "" for match in _BEGIN.finditer(text)}
    return "".join(piece for piece in _split(text, _own_key(text, ""), known) if isinstance(piece, str))


def _own_key(text: str, key: str) -> str:
    """The key of this file's marks: the expected one, or that of the first mark if the run was moved or renamed."""
    keys = [match.group(1) for match in _BEGIN.finditer(text)]
    return key if key in keys or not keys else keys[0]


def _split(text: str, key: str, known: Mapping[str, str]) -> list[str | _Part]:
    """The person's texts and the first complete part of each known name, in the order of the file."""
    pieces: list[str | _Part] = []
    seen: set[str] = set()
    start = 0
    begins = [m for m in _BEGIN.finditer(text) if m.group(1) == key]
    for i, begin in enumerate(begins):
        name, digest = begin.group(2), begin.group(3)
        limit = begins[i + 1].start() if i + 1 < len(begins) else len(text)
        end_mark = re.compile(rf"^<!-- /marlab:{key} {name} -->[ \t]*\r?(\n|\Z)", re.MULTILINE)
        end = end_mark.search(text, begin.end(), limit)
        if name in seen or name not in known or end is None or begin.start() < start:
            continue
        body = text[begin.end() : end.start()]
        pieces += [text[start : begin.start()], _Part(name, body, _digest(body) != digest)]
        seen.add(name)
        start = end.end()
    return [*pieces, text[start:]]


def _before_first(parts: Mapping[str, str], present: list[str]) -> list[str]:
    """Names that come before every part of the file; all of them when the file has none yet."""
    names = list(parts)
    return names[: min((names.index(name) for name in present), default=len(names))]


def _followers(parts: Mapping[str, str], name: str, present: list[str]) -> list[str]:
    """Names between this part and the next one that the file has, in their usual order."""
    names = list(parts)
    after = names[names.index(name) + 1 :]
    return after[: min((after.index(other) for other in present if other in after), default=len(after))]


def _block_of(absent: list[str], wanted: list[str], key: str, parts: Mapping[str, str], newline: str) -> list[str]:
    return [newline + _marked(key, name, parts[name], newline) + newline for name in wanted if name in absent]


def _marked(key: str, name: str, body: str, newline: str) -> str:
    body = re.sub("^(<!-- /?marlab:)", r" \1", body.strip("\n"), flags=re.MULTILINE) + "\n"  # no marks inside
    text = f"<!-- marlab:{key} {name} {_digest(body)}: {HINT} -->\n{body}<!-- /marlab:{key} {name} -->\n"
    return text.replace("\n", newline)


def _digest(text: str) -> str:
    """Eight hexadecimal digits that ignore line ends and blanks at the end of lines, which editors change."""
    lines = "\n".join(line.rstrip() for line in text.splitlines()).strip()
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()[:8]
