"""A game made from its config or from given maps, and restored from observations."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.build import game_with_blocks, restore
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import State
from marlab.hunt.game.views import View
from marlab.lab.runs.testing import assert_same
from tests.hunt.helpers import random_states, seeded


@pytest.mark.parametrize("name", ["msh_4x4", "msh_8x8_b5", "msg_4x4"])
def test_restoring_a_state_reproduces_the_step_bit_exactly(name: str) -> None:
    game, state = random_states(name, 10_000)
    view = View(game, state)
    again, restored = restore(game.config, view.board, state.t, state.first_hunt)
    actions = torch.randint(0, game.actions, state.cell.shape, generator=seeded(9))
    after, out = game.step(state, actions)
    after2, out2 = again.step(restored, actions)
    assert_same(View(game, after).grid, View(again, after2).grid)
    for field in ("reward", "done", "over", "executed", "hunters"):
        assert_same(getattr(out, field), getattr(out2, field), field)
    plain = State(**{k: v.clone() for k, v in state._asdict().items()})
    assert_same(tuple(game.step(plain, actions)[0]), tuple(after))


def test_given_maps_are_played_on() -> None:
    blocks = torch.zeros(1, 36, dtype=torch.bool)
    blocks[0, [0, 1, 2]] = True
    game = game_with_blocks(game_config("msh_6x6_b4"), blocks)
    state = game.reset(200, seeded(0))
    assert not torch.isin(state.cell, torch.tensor([0, 1, 2])).any()
