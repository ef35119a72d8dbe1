"""Targets of the world model agree with the recorded steps."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.data.collect import play_batches
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Rows
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.maps import draw_maps
from marlab.hunt.game.rules import STAY
from marlab.hunt.world_model.data import (
    GONE,
    LEAVE,
    Transitions,
    legal_from_planes,
    outcomes,
    reward_classes,
    reward_values,
)
from marlab.hunt.world_model.model import (
    _shifted,
)
from tests.hunt.helpers import seeded

GAME = game_config("msh_4x4")


CROWDED = game_config("msh_6x6_b4")


def real_rows(game: GameConfig, seed: int = 0) -> Rows:
    return next(play_batches(HuntCollectConfig(game=game, seed=seed, rand_share=0.3))).rows


def as_transitions(game: GameConfig, rows: Rows) -> Transitions:
    return Transitions(
        obs=rows.obs, joint=rows.joint_a, t=rows.t, reward=rows.r, next_obs=rows.next_obs,
        done=torch.stack([rows.done_i, rows.done_all], 1), outcome=outcomes(game, rows.obs, rows.next_obs),
        reward_class=reward_classes(game, rows.a, rows.r), follow=torch.full_like(rows.t, -1),
    )  # fmt: skip


@pytest.mark.parametrize("game", [GAME, CROWDED], ids=["open", "obstacles"])
def test_targets_agree_with_the_recorded_steps(game: GameConfig) -> None:
    rows = real_rows(game)
    data = as_transitions(game, rows)
    alive = rows.alive
    assert torch.equal(data.outcome == GONE, ~alive)
    hunts = rows.joint_a > STAY
    moved = alive & ~hunts
    assert torch.equal(data.outcome[moved], rows.joint_a[moved])  # executed moves are what happens
    assert set(data.outcome[alive & hunts].tolist()) <= {STAY, LEAVE}
    assert torch.equal(data.outcome[:, 0] == LEAVE, rows.r > 0)
    assert torch.allclose(reward_values(game)[data.reward_class], rows.r)
    assert torch.equal(legal_from_planes(game, rows.obs), rows.mask)


def test_reward_classes_use_the_action_where_values_coincide() -> None:
    game = game_config("msh_4x4", stag_reward=2.0)  # a stag shared by two pays as much as a hare
    found = reward_classes(game, torch.tensor([5, 6, 4]), torch.tensor([1.0, 1.0, 0.0]))
    assert found.tolist() == [5, 1, 0]


def test_bodies_move_as_in_the_game() -> None:
    maps = draw_maps(CROWDED, 8, seeded(0))
    cells = CROWDED.cells
    for m in range(maps.count):
        free = (~maps.blocks[m]).float()
        bodies = torch.eye(cells).view(cells, 6, 6, 1) * free.view(cells, 1, 1, 1)
        shifted = _shifted(bodies, free.view(1, 6, 6).expand(cells, -1, -1)).view(cells, cells, 5)
        inside = free > 0
        for action in range(5):
            body = shifted[..., action]
            assert torch.equal(body.sum(1), free)  # nobody is lost or doubled
            assert torch.equal(body.argmax(1)[inside], maps.move[m, :, action][inside])
