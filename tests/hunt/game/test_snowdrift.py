"""The snowdrift game: a removed drift pays everybody and charges its removers."""

from __future__ import annotations

from marlab.hunt.game.config import game_config
from tests.hunt.helpers import act, placed


def test_snowdrift_pays_everybody_and_charges_the_removers() -> None:
    config = game_config("msg_4x4")
    game, state = placed(config, players=[(1, 1), (1, 1), (2, 2), (0, 0)], stags=[(1, 1), (2, 2), (3, 3)])
    after, out = game.step(state, act(5, 5, 5, 5))
    assert out.reward[0].tolist() == [10.0, 10.0, 8.0, 12.0]
    assert after.alive.all() and after.prey_alive.sum() == 1 and not out.over.item()
    assert out.executed[0].tolist() == [5, 5, 5, 4]
