"""The scenario suite is frozen, readable, and refuses what it does not know."""

from __future__ import annotations

import hashlib

import pytest
import torch

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
from marlab.hunt.game.config import game_config
from marlab.hunt.players.policy import Team
from marlab.hunt.players.reciprocators import Reciprocators, parse_reciprocity
from marlab.hunt.players.rollout import moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded, small_game

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
    assert team("2NS+RAND").kinds == (Kind.NS, Kind.NS, Kind.RAND)
    assert team("3MIX(0.5)").kinds is None
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


def test_reciprocators_are_parsed() -> None:
    grim, tft = parse_reciprocity("GRIM(2)"), parse_reciprocity("TFT")
    assert str(grim) == "GRIM(2)" and str(tft) == "TFT" and parse_reciprocity("NS") is None
    with pytest.raises(UserError, match="0 strikes"):
        parse_reciprocity("GRIM(0)")
    with pytest.raises(UserError, match="value it does not take"):
        parse_reciprocity("TFT(1)")


def wants_after(rule: str, others: list[Kind], episodes: int) -> list[float]:
    """Share of games in which the reciprocator in seat 1 hunts the stag, before each episode."""
    game = small_game(game_config("msh_4x4"))
    how = parse_reciprocity(rule)
    assert how is not None
    everybody = Team(game, [Reciprocators(game, how), RulePlayers(game, [Kind.NS, *others])], [0, 1, 1, 1])
    generator = seeded(4)
    memory = everybody.begin(64, generator)
    found = []
    for _ in range(episodes):
        found.append(float((memory["0/type"][:, 0] == Kind.NS).float().mean()))
        final = memory
        for moment in moments(game, everybody, game.reset(64, generator), memory, generator):
            seen = everybody.observe(moment.view, moment.outcome, moment.memory)
            running = moment.running
            final = {k: torch.where(running.view(-1, *[1] * (v.dim() - 1)), seen[k], final[k]) for k, v in seen.items()}
        memory = everybody.reset(final, torch.ones(64, dtype=torch.bool), generator)
    return found


def test_grim_gives_up_after_its_strikes_and_never_before() -> None:
    alone = [Kind.NH, Kind.NH, Kind.NH]
    assert wants_after("GRIM(1)", alone, 3) == [1.0, 0.0, 0.0]
    assert wants_after("GRIM(2)", alone, 4) == [1.0, 1.0, 0.0, 0.0]
    assert wants_after("GRIM(1)", [Kind.NS, Kind.NH, Kind.NH], 4) == [1.0] * 4


def test_tit_for_tat_comes_when_somebody_came() -> None:
    assert wants_after("TFT", [Kind.NS, Kind.NH, Kind.NH], 3) == [1.0] * 3
    gone = wants_after("TFT", [Kind.NH, Kind.NH, Kind.NH], 3)
    assert gone[0] == 1.0 and gone[1] < 0.35  # a hare catcher may pass over the stag on its way
