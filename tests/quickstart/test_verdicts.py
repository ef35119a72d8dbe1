"""The sentences of the quickstart."""

from __future__ import annotations

from marlab.quickstart.verdicts import SENTENCES
from tests.lab.sentences import check


def test_every_sentence_is_said_and_every_key_has_words() -> None:
    check("quickstart", SENTENCES["en"])
