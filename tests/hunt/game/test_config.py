"""Games by name, and games that cannot be."""

from __future__ import annotations

import pytest

from marlab.hunt.game.config import GameConfig, game_config, game_names
from marlab.lab.errors import UserError


def test_every_shipped_game_can_be_made() -> None:
    assert "msh_4x4" in game_names() and "hop_4x4" not in game_names()
    for name in game_names():
        config = game_config(name)
        assert config.cells == config.height * config.width and config.players >= 2
    assert game_config("msh_4x4") == GameConfig()
    assert game_config("msh_4x4", final_time=9).final_time == 9


def test_unknown_and_impossible_games_are_refused() -> None:
    with pytest.raises(UserError, match="There is no preset 'msh_4x5', did you mean"):
        game_config("msh_4x5")
    with pytest.raises(UserError):
        GameConfig(players=0)
