from __future__ import annotations

import re
from pathlib import Path

from marlab.lab.notebook import words
from marlab.lab.notebook.words import WORDS, is_word, word, words_of
from tests.lab.notebook.tables import check_tables

ROOM = Path(words.__file__).parent
BY_PARTS = ("status.", "index.sort.", "compare.outcome.")
"""Keys that are put together while pages are made or read."""


def test_every_language_has_every_word() -> None:
    check_tables(words)


def test_every_word_is_used_and_every_used_word_is_there() -> None:
    sources = [*ROOM.rglob("*.j2"), *ROOM.rglob("*.js"), *(f for f in ROOM.glob("*.py") if f.name != "words.py")]
    text = "\n".join(file.read_text() for file in sources)
    unused = [key for key in WORDS["en"] if f'"{key}"' not in text and not key.startswith(BY_PARTS)]
    assert unused == []
    said = set(re.findall(r'\bt\("([a-z_.]+)"', text)) | set(re.findall(r'label\("[a-z-]+", "([a-z_.]+)"', text))
    assert sorted(key for key in said if not is_word(key) and not key.startswith(BY_PARTS)) == []


def test_holes_are_filled_and_unknown_keys_are_themselves() -> None:
    assert word("index.compare_some", count=3) == "Compare 3"
    assert word("index.compare_some", "zh", count=3) == "比较 3 个"
    assert word("a text") == "a text"
    assert not is_word("a text")
    assert not is_word("nowhere.at.all")


def test_words_of_a_world_carry_its_name() -> None:
    assert words_of(None) is WORDS
    assert all(key.startswith("fish.") for key in words_of("fish")["en"])
