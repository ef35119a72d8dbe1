"""Rows of players in play."""

from __future__ import annotations

import torch

from marlab.hunt.diagnose.online import play_rows
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.pretraining.floor import rule_rows

TINY = game_config("msh_tiny")


def test_played_rows_are_steps_of_living_players_with_their_own_chances() -> None:
    game = make_game(TINY)
    policy = RulePlayers(game, [Role(Kind.MIX, 0.5)] * game.players)
    part, truth = play_rows(game, policy, 40, torch.Generator().manual_seed(0))
    rows = part.rows
    assert truth is not None and bool(rows.alive[:, 0].all())
    assert torch.equal(rows.a, rows.joint_a[:, 0])
    assert bool((rows.t[part.offsets[:-1]] == 0).all())
    assert torch.equal(part.offsets.diff(), rows.steps[part.offsets[:-1]])
    exact = rule_rows(TINY, rows, (Kind.NS, Kind.NH))[torch.arange(rows.size), rows.type]
    torch.testing.assert_close(truth, exact)
