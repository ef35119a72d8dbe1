"""Texts from files and command lines on their way to a terminal."""

from __future__ import annotations

import unicodedata


def clean(text: str) -> str:
    """The text with control characters made visible: those of a stranger's run must not steer the terminal."""
    if text.isprintable():  # nearly always, and a long list is many texts
        return text
    return "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else _visible(c) for c in text)


def _visible(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def are(count: int, thing: str) -> str:
    """ "there is 1 run", "there are 2 runs", "there are no runs"."""
    return f"there is 1 {thing}" if count == 1 else f"there are {count or 'no'} {thing}s"
