"""A gate is a figure and its limit, told in one sentence."""

from __future__ import annotations

import pytest

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import team_optimum
from marlab.hunt.selfplay.gates import Gate, Gates, least, most


def test_a_gate_says_what_it_expects() -> None:
    assert Gate("x", 0.5, 0.6, True).text() == "x is 0.5, expected at least 0.6"
    assert most("x", 0.5, 0.4).text() == "x is 0.5, expected at most 0.4"
    assert not least("x", 0.5, 0.6).passed and least("x", 0.6, 0.6).passed
    assert not most("x", 0.5, 0.4).passed and most("x", 0.4, 0.4).passed


def test_shares_of_the_optimum_are_rewards_of_the_default_game() -> None:
    optimum = team_optimum(GameConfig())
    assert Gates().reward_share * optimum == pytest.approx(2.5)
    assert Gates().self_play_share * optimum == pytest.approx(2.6)
