"""Imagined games: every seat first in its own, views and legal actions as in the game."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import encode
from marlab.hunt.game.rules import RIGHT, STAY
from marlab.hunt.game.views import View
from marlab.hunt.planner.dynamics import ImaginedGame, TrueGame, ego_first, legal_of_planes
from marlab.hunt.world_model.model import make_model
from tests.hunt.helpers import placed, seeded, small_game

FOUR = GameConfig()


def test_every_seat_imagines_itself_first() -> None:
    game = small_game(FOUR)
    state = game.reset(6, seeded(0))
    games, seats = torch.arange(6), torch.tensor([0, 1, 2, 3, 2, 1])
    mine = ego_first(game, state, games, seats)
    everyone, legal = encode(game, state, torch.arange(4))
    dynamics = TrueGame(game)
    root = dynamics.root(state, games, seats)
    own, theirs = dynamics.own_view(root), dynamics.views_of_others(root)
    for b in range(6):
        seat = int(seats[b])
        assert torch.equal(own.rows[b, 0], everyone[b, seat]) and torch.equal(own.legal[b, 0], legal[b, seat])
        for k in range(3):
            assert torch.equal(theirs.rows[b, k], everyone[b, (seat + 1 + k) % 4])
    action, others = torch.full((6,), RIGHT), torch.full((6, 3), STAY)
    stepped = dynamics.step(root, action, others)
    joint = torch.full((6, 4), STAY)
    joint[games, seats] = RIGHT
    after, _ = game.step(state, joint)
    assert torch.equal(ego_first(game, after, games, seats).cell, stepped.embedding[1])
    assert mine.batch == 6


@pytest.mark.parametrize("paths", [False, True])
def test_imagined_views_and_legal_actions_are_those_of_the_game(paths: bool) -> None:
    game = small_game(GameConfig(height=6, width=6, max_block_comp=3))
    state = game.reset(20, seeded(1))
    state = state._replace(alive=torch.rand(20, 4, generator=seeded(2)) < 0.8)
    assert torch.equal(legal_of_planes(View(game, state).board, 4), game.legal(state))
    model = make_model("structured", game.config, width=8, generator=seeded(3)).eval()
    true, imagined = TrueGame(game, paths), ImaginedGame(game, model, paths)
    games, seats = torch.arange(20), torch.arange(20) % 4
    a, b = (d.views_of_others(d.root(state, games, seats)) for d in (true, imagined))
    assert torch.equal(a.rows, b.rows) and torch.equal(a.legal, b.legal) and torch.equal(a.time, b.time)
    there = state._replace(cell=state.cell.clone())
    there.cell[::2, 2] = there.prey_cell[::2, 0]
    a, b = (d.on_stag(d.root(there, games, seats)) for d in (true, imagined))
    assert torch.equal(a, b) and bool(a.any())
    assert torch.equal(a[:, 0], there.alive[games, seats] & (there.cell[games, seats] == there.prey_cell[:, 0]))
    planes, _, which = imagined.root(state, games, seats)
    late = (planes, torch.full((20,), game.config.final_time - 1), which)
    stepped = imagined.step(late, torch.full((20,), STAY), torch.full((20, 3), STAY))
    assert bool((stepped.stays == 0).all())  # the clock needs no model


ALONE = [(0, 0), None, None, None]


@pytest.mark.parametrize(
    ("players", "stags", "hares", "most"),
    [
        ([(0, 0), (3, 3), None, None], [(1, 1)], [(2, 2)], 5.0),  # two can share the stag
        (ALONE, [(1, 1)], [(2, 2)], 1.0),  # nobody comes to the stag
        ([(0, 0), (3, 3), None, None], [], [(2, 2)], 1.0),
        (ALONE, [(1, 1)], [], 0.0),
    ],
)
def test_the_most_that_a_planner_can_earn_is_what_the_rules_allow(players, stags, hares, most: float) -> None:
    game, state = placed(FOUR, players=players, stags=stags, hares=hares)
    model = make_model("structured", FOUR, width=8, generator=seeded(3)).eval()
    for dynamics in (TrueGame(game), ImaginedGame(game, model)):
        found = dynamics.most(
            dynamics.root(state, torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
        )
        assert found is not None and found.tolist() == [most]


@pytest.mark.parametrize("change", [{"prosocial": True}, {"time_reward": -0.1}])
def test_where_a_look_does_not_tell_there_is_no_bound(change: dict) -> None:
    config = GameConfig(**change)
    game = small_game(config)
    root = TrueGame(game).root(game.reset(2, seeded(0)), torch.arange(2), torch.zeros(2, dtype=torch.int64))
    assert TrueGame(game).most(root) is None
