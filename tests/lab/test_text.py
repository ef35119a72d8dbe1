"""Texts of strangers on a terminal."""

from __future__ import annotations

from marlab.lab.text import are, clean


def test_control_characters_are_shown_and_not_obeyed() -> None:
    assert clean("a\x1b[31mred\x07\r") == "a\\x1b[31mred\\x07\\r"
    assert clean("zwei\n\tZeilen, Größe, 市场") == "zwei\n\tZeilen, Größe, 市场"
    assert clean("\u202eevil\x9b") == "\\u202eevil\\x9b"
    assert clean("\udc80") == "\\udc80"


def test_one_is_no_plural() -> None:
    assert [are(n, "run") for n in (0, 1, 2)] == ["there are no runs", "there is 1 run", "there are 2 runs"]
