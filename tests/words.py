"""What texts of pages must be like, in all languages."""

from __future__ import annotations

import re
from collections.abc import Mapping

PLACE = re.compile(r"\{(\w+)\}")


def assert_same_everywhere(words: Mapping[str, Mapping[str, str]]) -> None:
    """Every key is said in English and Chinese, with the same places for numbers and names, and not empty."""
    assert set(words) == {"en", "zh"}
    assert set(words["en"]) == set(words["zh"])
    for key, text in words["en"].items():
        other = words["zh"][key]
        assert text.strip() and other.strip(), key
        assert set(PLACE.findall(text)) == set(PLACE.findall(other)), key
