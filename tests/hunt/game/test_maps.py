"""Obstacle maps: connected, large enough, refused where they cannot be."""

from __future__ import annotations

import random

import pytest
import torch

from marlab.hunt.game.build import restore
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.maps import connected, draw_blocks
from marlab.hunt.game.scalar import Rules
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded

FOUR = game_config("msh_4x4")


@pytest.mark.long
@pytest.mark.parametrize("name", ["msh_6x6_b4", "msh_8x8_b5"])
def test_free_cells_are_connected_over_ten_thousand_resets(name: str) -> None:
    config = game_config(name)
    blocks = draw_blocks(config, 10_000, seeded(1))
    assert connected(config, blocks).all()
    rules, rng = Rules(config), random.Random(0)
    counts = [rules.start(rng).blocks.bit_count() for _ in range(300)]
    mean = blocks.sum(1).float().mean().item()  # the same rule drawn one game at a time
    assert mean == pytest.approx(sum(counts) / 300, abs=0.5)


def test_flood_finds_disconnected_maps() -> None:
    config = game_config("msh_6x6_b4")
    split = torch.zeros(2, 6, 6, dtype=torch.bool)
    split[0, 2, :] = True
    split[1, 2, :5] = True
    assert connected(config, split.flatten(1)).tolist() == [False, True]


def test_impossible_layouts_are_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match=r"4x4 grid with 5 obstacle components .* at most 2 components fit"):
        game_config("msh_4x4", max_block_comp=5)
    with pytest.raises(UserError, match="no preset 'msh_4x5', did you mean"):
        game_config("msh_4x5")
    with pytest.raises(UserError, match="one per player"):
        game_config("msh_4x4", player_strength=(1.0, 2.0))
    narrow = GameConfig(height=2, width=4, players=1, stags=0, hares=1, max_block_comp=1)
    assert draw_blocks(narrow, 50, seeded(0)).shape == (50, 8)
    with pytest.raises(UserError, match="planes have the shape"):
        restore(FOUR, torch.zeros(1, 6, 6, 7), torch.zeros(1))


def test_a_grid_where_every_component_cuts_it_is_refused_after_many_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    from marlab.hunt.game import maps as layouts

    monkeypatch.setattr(layouts, "connected", lambda config, blocks: torch.zeros(blocks.shape[0], dtype=torch.bool))
    with pytest.raises(UserError, match=r"No valid layout .* 1000 restarts for a 6x6 grid with max_block_comp 4"):
        draw_blocks(game_config("msh_6x6_b4"), 1, seeded(0))
