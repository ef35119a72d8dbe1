"""What players see: ego first, absent as seven, flat for networks, stale for the legacy view."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from marlab.hunt.game.config import game_config, game_names
from marlab.hunt.game.rules import ABSENT
from marlab.hunt.game.views import View
from marlab.lab.runs.testing import assert_same
from tests.hunt.helpers import act, placed, random_states, small_game

FOUR = game_config("msh_4x4")


@pytest.mark.parametrize("name", game_names())
def test_views_are_ego_first_and_absent_is_seven(name: str) -> None:
    game, state = random_states(name, 400, seed=3)
    view, n = View(game, state), game.players
    assert view.grid.shape == (400, n, *game.observation_shape)
    for i in range(n):
        for k in range(n):
            other = (i + k) % n
            assert_same(view.grid[:, i, ..., k], view.board[..., other])
            present = state.alive[:, other]
            assert (view.actions[present, i, k] == state.last_action[present, other]).all()
            assert (view.actions[~present, i, k] == ABSENT).all()
            assert_same(view.alive[:, i, k], present)
        assert_same(view.grid[:, i, ..., n:], view.board[..., n:])


def test_flat_observations_hold_every_field_for_fixed_and_for_moving_seats() -> None:
    from marlab.hunt.game.views import flat_fields

    game, state = random_states("msh_8x8_b5", 200, seed=4)
    view, fields = View(game, state), flat_fields(game)
    seats = torch.arange(200).unsqueeze(1) % 4
    flat, moving = view.flat(torch.arange(4)), view.flat(seats)
    assert flat.shape == (200, 4, fields.size) and fields.size == 7 + 4 + 448 + 1 + 4
    assert_same(flat[..., fields.mask].bool(), view.mask.contiguous())
    assert_same(flat[..., fields.actions].long(), view.actions)
    assert_same(flat[..., fields.grid].view(200, 4, 8, 8, 7).to(torch.uint8), view.grid)
    assert_same(flat[..., fields.time], (state.t / 35).view(-1, 1, 1).expand(-1, 4, 1))
    assert_same(flat[..., fields.alive].bool(), view.alive)
    assert_same(moving.squeeze(1), flat[torch.arange(200), seats.squeeze(1)])


def test_legacy_views_keep_global_order_and_stale_hunts() -> None:
    config = dataclasses.replace(FOUR, legacy_global_prev_actions=True)
    game, state = placed(config, players=[(1, 1), (1, 1), (2, 2), (0, 0)], stags=[(1, 1)], hares=[(2, 2), (3, 3)])
    state = game.step(game.step(state, act(5, 5, 6, 3))[0], act(4, 4, 4, 1))[0]
    assert View(game, state).actions[0, 3].tolist() == [5, 5, 6, 1]


def test_observation_shapes() -> None:
    assert small_game(FOUR).observation_shape == (4, 4, 7)
    assert small_game(game_config("msh_8x8_b5")).observation_shape == (8, 8, 7)
    assert small_game(game_config("msg_8x8")).observation_shape == (8, 8, 6)
