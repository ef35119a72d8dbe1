"""What every table of verdict sentences must keep: each key is said somewhere, and each that is said has words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from marlab.lab.verdict import KEY, template

SRC = Path(__file__).parents[2] / "src" / "marlab"


def said(package: str) -> set[str]:
    """Keys of a package in its source; where one is put together, a pattern. Modules `pages` name kinds of panels."""
    files = [file for file in sorted((SRC / package).rglob("*.py")) if file.name != "pages.py"]
    return {key for file in files for key in _keys(file.read_text(), package)}


def _keys(source: str, package: str) -> Iterator[str]:
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                re.escape(part.value) if isinstance(part, ast.Constant) else "[a-z_]+" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = re.escape(node.value)
        else:
            continue
        if re.fullmatch(rf"{package}\\\.[a-z0-9_\[\]+-]+", text) and not text.endswith("html"):
            yield text.removeprefix(f"{package}\\.")


def check(package: str, table: dict[str, str]) -> None:
    """All keys of a table are said in its package, and all that are said there are in it."""
    patterns = said(package)
    for key, words in table.items():
        assert KEY.fullmatch(f"{package}.{key}") and template(f"{package}.{key}") == words
        assert any(re.fullmatch(pattern, key) for pattern in patterns), f"nobody says {key}"
        for _, name, form, conversion in Formatter().parse(words):
            assert name != "" and conversion is None, words
            if name is not None and form:
                format(0.5 if form[-1] in "f%" else 5, form)
        assert words.endswith(".") and words.count("`") % 2 == 0, words
    for pattern in patterns:
        assert any(re.fullmatch(pattern, key) for key in table), f"there are no words for {pattern}"


FEWEST_TRANSLATED = 0.8
"""Share of sentences that must be there in Chinese; a missing one is said in English."""


def check_translation(english: dict[str, str], other: dict[str, str]) -> None:
    """Every translated sentence says the same values in the same form."""
    assert set(other) <= set(english), f"nobody says {set(other) - set(english)}"
    assert len(other) >= FEWEST_TRANSLATED * len(english), f"not translated: {set(english) - set(other)}"
    for key, words in other.items():
        assert _holes(words) == _holes(english[key]), key
        assert words.endswith("。") and words.count("`") == english[key].count("`"), key


def _holes(words: str) -> list[tuple[str, str]]:
    return sorted((name, form or "") for _, name, form, _ in Formatter().parse(words) if name is not None)
