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
    fitted,
    suite_of,
    team,
    team_members,
    teams_of,
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


@pytest.mark.parametrize("players", [2, 3, 4, 5, 6])
def test_the_suite_fits_games_of_any_size(players: int) -> None:
    made = (*suite_of(players), *teams_of(players))
    assert all(s.focal + len(s.background) == players and s.description for s in made)
    seatings = [(s.focal, tuple(sorted(s.background))) for s in suite_of(players)]
    assert len(set(seatings)) == len(seatings)  # no scenario is played twice under two names
    assert {"visit_all_stag", "visit_all_hare", "self_play"} <= {s.name for s in suite_of(players)}
    check_background(made, [])


def test_four_players_have_the_frozen_suite_and_six_the_same_ideas() -> None:
    assert suite_of(4) == SUITE and teams_of(4) == TEAMS
    assert by_name("visit_lone_hunter", 6).background == ("NS", "NH", "NH", "NH", "NH")
    assert by_name("NS+2NH+2RAND", 6).background == ("NS", "NH", "NH", "RAND", "RAND")
    assert (by_name("halves_stag", 6).focal, by_name("host_hare", 6).focal, by_name("self_play", 6).focal) == (3, 5, 6)
    assert fitted(team("2NS+NH"), 6).name == "2NS+3NH" and fitted(team("2NS+NH"), 2).name == "NS"
    with pytest.raises(UserError, match="has 3 members, expected 5"):
        by_name("3NS", 6)
    with pytest.raises(UserError, match="needs others"):
        suite_of(1)
