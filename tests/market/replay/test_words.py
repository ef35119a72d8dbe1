"""The texts of the pages are there in both languages."""

from __future__ import annotations

from marlab.market.replay.words import WORDS
from tests.words import assert_same_everywhere


def test_both_languages_say_the_same() -> None:
    assert_same_everywhere(WORDS)
