"""Markdown that shows what it is given: names, commands and values come from strangers and may contain anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from urllib.parse import quote

# Direction overrides could make a command read differently from what it is.
_MISLEADING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_SPECIAL = re.compile(r"[\\`*\[\]<&~]|(?<![^\W_])_|_(?![^\W_])")


def clean(text: str) -> str:
    """`text` on one line: line ends and tabs become spaces, other control characters a visible mark."""
    flat = re.sub(r"[\s\u2028\u2029]", " ", _MISLEADING.sub("\ufffd", text))
    return "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c for c in flat)


def plain(text: str) -> str:
    """Text that Markdown shows letter by letter, anywhere but at the start of a line."""
    return _SPECIAL.sub(r"\\\g<0>", clean(text))


def code(text: str) -> str:
    """Text as a code span."""
    content = clean(text)
    if not content.strip():
        return "(empty)"
    ticks = "`" * (_longest_ticks(content) + 1)
    pad = " " if content[0] in "` " or content[-1] in "` " else ""
    return f"{ticks}{pad}{content}{pad}{ticks}"


def spans(text: str) -> str:
    """Plain text in which what stands between backticks is code."""
    parts = text.split("`")
    return "".join(
        code(part) if place % 2 and place < len(parts) - 1 else plain(part) for place, part in enumerate(parts)
    )


def fence(text: str, language: str = "") -> str:
    """Text as a code block; its line ends stay."""
    lines = [clean(line) for line in text.splitlines()] or [""]
    ticks = "`" * max(3, _longest_ticks(text) + 1)
    return "\n".join([f"{ticks}{language}", *lines, ticks])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown cells; bars inside cells are protected here."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def link(label: str, path: str) -> str:
    """A link to a file by its relative path."""
    return f"[{plain(label)}]({quote(path.encode('utf-8', 'surrogateescape'), safe='/')})"


def image(label: str, path: str) -> str:
    """A picture by its relative path."""
    return "!" + link(label, path)


def bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _longest_ticks(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
