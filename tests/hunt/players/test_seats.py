"""Players by their names in the tables, seats that learn, and seeds."""

from __future__ import annotations

import pytest

from marlab.hunt.game.config import game_config
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import (
    MOST_SEEDS,
    Kind,
    Role,
    parse_role,
    parse_roles,
    parse_seats,
    parse_seeds,
    team_members,
)
from marlab.lab.errors import UserError
from tests.hunt.helpers import small_game

FOUR = game_config("msh_4x4")


def test_roles_are_read_and_wrong_ones_refused() -> None:
    text = "NS,MIX(0.3),SWITCH(10,NH),WAIT(5)"
    assert ",".join(map(str, parse_roles(text))) == text
    assert parse_role("WAIT") == Role(Kind.WAIT, 5.0)
    wrong = {"XX": "is not a player", "NS(3)": "does not take", "MIX(2)": "from 0 to 1", "ns": "is not a player"}
    wrong |= {"WAIT(1.2.3)": "is not a player", "WAIT(.)": "is not a player"}
    for text, said in wrong.items():
        with pytest.raises(UserError, match=said):
            parse_role(text)
    with pytest.raises(UserError, match="one per player"):
        RulePlayers(small_game(FOUR), [Kind.NS])
    with pytest.raises(UserError, match="does not play snowdrift"):
        RulePlayers(small_game(game_config("msg_4x4")), [Kind.NS] * 4)


def test_seeds() -> None:
    assert parse_seeds("0..4") == (0, 1, 2, 3, 4)
    assert parse_seeds("3") == (3,)
    assert parse_seeds("1,5,7..8") == (1, 5, 7, 8)
    for wrong in ("", "a", "4..1", "1,1", "0..x", "-1"):
        with pytest.raises(UserError, match="seeds is"):
            parse_seeds(wrong)


def test_long_lists_are_refused_before_they_are_written_out() -> None:
    assert len(parse_seeds(f"0..{MOST_SEEDS - 1}")) == MOST_SEEDS
    for wrong in ("0..99999999999", f"0..{MOST_SEEDS}", f"5,7..{MOST_SEEDS + 7}", f"0..{'9' * 5000}"):
        with pytest.raises(UserError, match="seeds is"):
            parse_seeds(wrong)
    assert len(team_members("99NH")) == 99
    with pytest.raises(UserError, match="is not a team"):
        team_members("99999999999NH")


def test_seats() -> None:
    assert parse_seats("", 4)[0] == (0, 1, 2, 3)
    seats, roles = parse_seats("NS,PPO,SWITCH(3,NH),PPO", 4)
    assert seats == (1, 3)
    assert roles[0].kind == Kind.NS and roles[2].kind == Kind.SWITCH and roles[2].reverse
    for wrong, told in (("PPO,NS", "2 players"), ("NS,NS,NS,NS", "nobody"), ("PPO,XX,NS,NS", "not a player")):
        with pytest.raises(UserError, match=told):
            parse_seats(wrong, 4)
