"""Names of players beyond the plain rules."""

from __future__ import annotations

import pytest

from marlab.hunt.players.characters import Keep, Noisy, Reciprocity, parse_character
from marlab.hunt.players.seats import Kind, Role
from marlab.lab.errors import UserError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NOISY(0.2,NS)", Noisy(0.2, Role(Kind.NS))),
        ("NOISY(0.1,SWITCH(4,NH))", Noisy(0.1, Role(Kind.SWITCH, 4.0, True))),
        ("KEEP", Keep()),
        ("KEEP(0.3)", Keep(0.3)),
        ("GRIM(2)", Reciprocity("GRIM", 2)),
        ("WAIT(5)", Role(Kind.WAIT, 5.0)),
    ],
)
def test_a_name_says_who_plays_and_is_written_the_same(text: str, expected: object) -> None:
    found = parse_character(text)
    assert found == expected
    assert parse_character(str(found)) == found


@pytest.mark.parametrize(
    "text", ["NOISY(1.2,NS)", "NOISY(0.1,MIX(0.5))", "NOISY(x,NS)", "KEEP(2)", "NOISY(0.1)", "WHO"]
)
def test_what_is_no_player_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_character(text)
