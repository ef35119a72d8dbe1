"""What finished episodes say about their players."""

from __future__ import annotations

import pytest

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.players.episodes import episode_report, team_optimum
from marlab.hunt.players.rollout import play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from tests.hunt.helpers import seeded

TINY = game_config("msh_tiny")


def test_team_optimum_and_report() -> None:
    assert team_optimum(GameConfig()) == 3.0
    assert team_optimum(game_config("msh_4x4_4h2s")) == 5.0
    assert team_optimum(TINY) == 5.0
    assert team_optimum(game_config("msg_8x8")) == 30.0
    game = make_game(GameConfig())
    episodes = play(game, RulePlayers(game, [Kind.NS, Kind.NS, Kind.NH, Kind.NH]), 500, seeded(0))
    report = episode_report(game.config, episodes)
    assert report["reward"]["value"] == pytest.approx(2.975, abs=0.03)
    assert report["seat_spread"] == pytest.approx(4.0, abs=0.1)
    assert report["outcomes"]["stag_2"] == pytest.approx(0.5, abs=0.01)
    assert sum(report["outcomes"].values()) == pytest.approx(1.0)
    focal = episode_report(game.config, episodes, [0])
    assert focal["reward_learners"] == focal["reward_player"][0] and focal["seat_spread"] == 0
