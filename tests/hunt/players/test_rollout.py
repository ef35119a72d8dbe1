"""Whole episodes and what happened in them."""

from __future__ import annotations

import dataclasses

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.rollout import HARE, NONE, STAG, play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, parse_roles
from tests.hunt.helpers import seeded

FOUR = game_config("msh_4x4")


def test_play_reports_what_happened() -> None:
    game = make_game(FOUR)
    result = play(game, RulePlayers(game, parse_roles("NS,NS,NH,NH")), 300, seeded(0))
    assert (result.outcome[:, :2] == STAG).all() and (result.hunters[:, :2] == 2).all()
    assert (result.reward[:, :2] == 5).all() and set(result.outcome[:, 2:].unique().tolist()) <= {HARE, NONE}
    assert (result.steps.amax(1) == result.length).all() and (result.steps >= 1).all()
    assert (result.first_hunt < result.length).all() and (result.first_hunt >= 0).all()
    best = dataclasses.replace(FOUR, stags=0, hares=4)
    alone = make_game(best)
    assert (play(alone, RulePlayers(alone, [Kind.NS] * 4), 50, seeded(0)).reward == 0).all()
