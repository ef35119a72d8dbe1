"""The scenario suite is frozen, readable, and refuses what it does not know."""

from __future__ import annotations

import hashlib

import pytest

from marlab.hunt.evaluate.scenarios import (
    SEATS,
    SUITE,
    SUITE_VERSION,
    TEAMS,
    by_name,
    check_background,
    team,
    team_members,
)
from marlab.hunt.players.seats import Kind, Role
from marlab.lab.errors import UserError

FROZEN = {1: "ec986c48e2da13ea"}
"""Digest of who plays in version 1. A change of the suite is a new version with a digest of its own."""


def test_the_suite_is_frozen() -> None:
    told = "\n".join(f"{s.name}|{s.focal}|{','.join(s.background)}" for s in SUITE)
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == FROZEN[SUITE_VERSION]


def test_every_scenario_fills_the_table_with_known_players() -> None:
    assert len({s.name for s in SUITE}) == len(SUITE)
    for scenario in (*SUITE, *TEAMS):
        assert scenario.focal + len(scenario.background) == SEATS and scenario.description
    check_background([*SUITE, *TEAMS], [])
    tags = {tag for s in SUITE for tag in s.tags}
    assert {"visitor", "resident", "reciprocity", "mixture", "convention"} <= tags


def test_teams_are_written_as_in_the_tables() -> None:
    assert team_members("NS+2NH") == ("NS", "NH", "NH")
    assert team_members("SWITCH(8,NH)+2NH") == ("SWITCH(8,NH)", "NH", "NH")
    assert team("2NS+RAND").characters() == (Role(Kind.NS), Role(Kind.NS), Role(Kind.RAND))
    assert team("NS+2ppo").characters(["ppo"]) is None
    assert by_name("visit_grim").background == ("GRIM(1)", "NH", "NH")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("NS+NH", "has 2 members, expected 3"),
        ("0NS+3NH", "is not a team"),
        ("+NS", "is not a team"),
        ("visit_nobody", "is not a scenario"),
    ],
)
def test_a_wrong_team_is_told_in_a_sentence(text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        by_name(text)


def test_an_unknown_background_player_is_refused() -> None:
    with pytest.raises(UserError, match=r"FOX.* is not a player"):
        check_background([team("3FOX")], ["ppo"])
    check_background([team("3ppo")], ["ppo"])
