"""The calibrated figures fit the rules: rewards of the ladder follow from the prizes."""

from __future__ import annotations

from marlab.hunt.exact.calibration import FOCAL, FOCAL_TOLERANCE, LADDER, POPULATIONS
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.players.seats import parse_roles


def test_the_ladder_follows_from_the_prizes() -> None:
    game = GameConfig()
    for (hunters, catchers), (_, reward) in LADDER.items():
        total = (game.stag_reward if hunters >= 2 else 0.0) + catchers * game.hare_reward
        assert reward == total / game.players


def test_every_table_is_of_a_known_game_and_known_players() -> None:
    for name, table in POPULATIONS.items():
        assert all(len(parse_roles(roles)) == game_config(name).players for roles in table)
    for name, team in FOCAL:
        assert len(parse_roles(team)) == game_config(name).players - 1 and name in FOCAL_TOLERANCE
