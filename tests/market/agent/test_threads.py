"""A thread remembers its negotiation for the book of partners."""

from __future__ import annotations

from marlab.market.agent.threads import Thread
from marlab.market.rules.partners import Heard, PartnerBook

HIGH, LOW = 22.0, 18.0


def test_what_is_remembered_of_a_negotiation() -> None:
    book = PartnerBook()
    thread = Thread("p", True, [(10, 22, 1, True), (3, 18, 0, False), (5, 20, 2, True)], round=1, proposed=(5, 12, 20))
    talk = thread.talk(5, LOW, HIGH)
    assert (talk.offers, talk.taken, talk.left) == (2, 5, False) and talk.heard == [Heard(3, 0.0, 0)]
    book.add_talk(talk)
    record = book.records(["p"], True)
    assert [float(field[0]) for field in (record.offers, record.taken, record.taken_units, record.left)] == [2, 1, 5, 0]
    left = thread.talk(0, LOW, HIGH)
    assert left.left and left.taken == 0
    thread.proposed = None  # I took the partner's offer, or ended it
    assert thread.talk(3, LOW, HIGH).taken == 0 and not thread.talk(0, LOW, HIGH).left
