"""Planners from Python: those that come with the package play at once."""

from __future__ import annotations

import pytest
import torch

import marlab.hunt as hunt


@pytest.mark.parametrize("name", ["hop_4x4", "hop_8x8_b5"])
def test_shipped_planners_meet_at_the_stag_with_a_hunter(name: str) -> None:
    from marlab.hunt.players.policy import Team
    from marlab.hunt.players.rollout import play
    from marlab.hunt.players.seats import parse_role

    planner = hunt.load(name)
    generator = torch.Generator().manual_seed(0)
    game = hunt.make_game(planner.game, generator, maps=4)
    me = planner.policy(game, seats=[0], simulations=16, trees=2)
    others = hunt.RulePlayers(game, [parse_role(word) for word in ("NS", "NS", "NH", "NH")])
    with torch.no_grad():
        episodes = play(game, Team(game, [me, others], [0, 1, 1, 1]), 6, generator)
    assert float(episodes.reward[:, 0].mean()) > 3.0  # with the hunter 5, alone at the hares 1
