"""Pictures and text show who is where, what is left and what was captured."""

from __future__ import annotations

import numpy as np
import torch

from marlab.hunt.game import render
from marlab.hunt.game.config import game_config
from tests.hunt.helpers import placed, seeded, small_game

FOUR = game_config("msh_4x4")


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])


def amount(picture: np.ndarray, colour: str) -> int:
    """Pixels of (nearly) this colour."""
    return int((np.abs(picture.astype(int) - rgb(colour)).max(2) < 12).sum())


def test_text_shows_the_board() -> None:
    game, state = placed(FOUR, players=[(0, 0), (1, 1), (1, 1), None], stags=[(1, 1)], hares=[(0, 3), (3, 3)], t=7)
    lines = render.text(render.scene(game, state)).splitlines()
    assert lines[0] == "t 7/35" and lines[2] == "|1   |    |    |h   |"
    assert lines[4] == "|    |S23 |    |    |" and lines[8].endswith("|h   |")
    config = game_config("msh_6x6_b4")
    game, state = placed(config, players=[(0, 0)] * 4, stags=[(5, 5)], hares=[(4, 4)], obstacles=[(0, 1)])
    assert render.text(render.scene(game, state)).splitlines()[2].startswith("|1234|####|")


def test_a_picture_shows_players_prey_obstacles_and_captures() -> None:
    game, state = placed(FOUR, players=[(1, 1), (1, 1), (3, 0), (0, 0)], stags=[(1, 1)], hares=[(2, 2)])
    before = render.image(render.scene(game, state))
    for colour in (*render.PLAYER[:4], render.STAG, render.HARE):
        assert amount(before, colour) > 100
    assert amount(before, render.GLOW) == 0 and amount(before, render.ROCK) < 500  # smooth edges only
    state, out = game.step(state, torch.tensor([[5, 5, 4, 4]]))
    shown = render.scene(game, state, outcome=out)
    assert shown.captures == [(5, 0, "+5")] and shown.got == ["stag", "stag", "", ""]
    after = render.image(shown)
    assert amount(after, render.GLOW) > 500 and after.shape == before.shape
    assert amount(after, render.PLAYER[0]) == 0 and amount(after, render.PLAYER[2]) > 100
    assert "left with 1: stag, 2: stag" in render.text(shown)


def test_sizes_captions_and_the_other_game() -> None:
    game = small_game(game_config("msh_8x8_b5"))
    state = game.reset(3, seeded(0))
    large, small = (render.image(render.scene(game, state, 2), cell=c) for c in (96, 48))
    assert large.shape[0] > 1.9 * small.shape[0] and amount(large, render.ROCK) > 5000
    plain = render.image(render.scene(game, state, 2), cell=48, caption="")
    assert not np.array_equal(plain[:20], small[:20]) and np.array_equal(plain[60:], small[60:])
    snow = small_game(game_config("msg_4x4"))
    assert amount(render.image(render.scene(snow, snow.reset(1, seeded(0)))), render.SNOW) > 1000
    assert np.array_equal(large, render.image(render.scene(game, state, 2), cell=96))  # the same scene, the same bytes
