"""Sentences of the hunt: every key that the code says has its words, and no words are left over."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

from marlab.hunt import verdicts
from tests.lab.sentences import check_translation

SOURCE = Path(verdicts.__file__).parent
NOT_SAID = ("verdicts.py", "pages.py")  # pages name kinds of panels


def test_every_key_has_its_sentence() -> None:
    words = verdicts.SENTENCES["en"]
    code = "\n".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name not in NOT_SAID)
    assert set(re.findall(r'"hunt\.([a-z_]+)"', code)) <= set(words), "said, and nobody knows the words"
    assert {key for key in words if f'"hunt.{key}"' not in code and f'"{key}"' not in code} == set(), "never said"
    for text in words.values():
        assert text.endswith(".") and all(name != "" for _, name, _, _ in Formatter().parse(text))


def test_the_values_are_the_same_in_chinese() -> None:
    check_translation(verdicts.SENTENCES["en"], verdicts.SENTENCES["zh"])
