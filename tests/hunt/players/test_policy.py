"""Choosing among marked actions, and teams of several policies."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import ABSENT
from marlab.hunt.players.policy import Team, choose
from marlab.hunt.players.rollout import moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, parse_roles
from marlab.lab.runs.testing import assert_same
from tests.hunt.helpers import seeded, small_game

FOUR = game_config("msh_4x4")


def test_choose_is_uniform_over_the_marked_and_absent_without_any() -> None:
    options = torch.tensor([[[1, 0, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0]]]).bool()
    actions = choose(options.expand(30_000, -1, -1).unbind(2), seeded(0))
    assert (actions[:, 1] == ABSENT).all() and (actions[:, 2] == 5).all()
    counts = torch.bincount(actions[:, 0], minlength=7) / 30_000
    assert counts.tolist() == pytest.approx([1 / 3, 0, 1 / 3, 0, 0, 0, 1 / 3], abs=0.012)


def test_a_team_is_its_policies_seat_by_seat() -> None:
    game = small_game(FOUR)
    whole = RulePlayers(game, parse_roles("NS,NH,NH,RAND"))
    parts = [RulePlayers(game, [kind] * 4) for kind in (Kind.NS, Kind.NH, Kind.RAND)]
    team = Team(game, parts, [0, 1, 1, 2])
    generator = seeded(0)
    memory = team.begin(64, generator)
    for moment in moments(game, team, game.reset(64, generator), memory, generator):
        expected = whole.probabilities(moment.view, whole.begin(64, seeded(0)))
        found = team.probabilities(moment.view, moment.memory)
        assert found is not None
        assert_same(found, expected)
        chosen = expected.gather(2, moment.asked.clamp_max(6).unsqueeze(2)).squeeze(2)
        assert (chosen[moment.view.state.alive] > 0).all()
    with pytest.raises(ValueError, match="do not fit"):
        Team(game, parts, [0, 1, 3, 2])
