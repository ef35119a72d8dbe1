"""The sentences of the market commands."""

from __future__ import annotations

from marlab.market.verdicts import SENTENCES
from tests.lab.sentences import check


def test_every_sentence_is_said_and_every_key_has_words() -> None:
    check("market", SENTENCES["en"])
