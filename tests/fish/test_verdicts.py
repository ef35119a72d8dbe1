"""The sentences of the fish commands."""

from __future__ import annotations

from marlab.fish.verdicts import SENTENCES
from tests.lab.sentences import check


def test_every_sentence_is_said_and_every_key_has_words() -> None:
    check("fish", SENTENCES["en"])
