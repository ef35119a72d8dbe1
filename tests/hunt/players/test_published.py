"""Published figures agree with each other wherever one follows from another."""

from __future__ import annotations

import pytest

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import team_optimum
from marlab.hunt.players.published import (
    CLASSES,
    CONFUSION,
    MCTS_END,
    OPTIMUM,
    PPO_END,
    REWARD_CURVES,
    ROWS,
    TOP1,
    WORLD_CHANNELS,
    WORLD_OBS_MSE,
)


def test_tables_agree() -> None:
    assert sum(map(sum, CONFUSION)) == ROWS
    assert [sum(row) / ROWS for row in CONFUSION] == pytest.approx(CLASSES, abs=1e-4)
    assert sum(CONFUSION[i][i] for i in range(7)) / ROWS == pytest.approx(TOP1[-1], abs=1e-4)
    assert sum(WORLD_CHANNELS) / 7 == pytest.approx(WORLD_OBS_MSE, abs=1e-5)


def test_curves_end_where_the_table_says() -> None:
    assert team_optimum(GameConfig()) == OPTIMUM
    ends = {variant: curve.points[-1] for variant, curve in REWARD_CURVES.items()}
    assert ends["ppo"][1] == PPO_END and ends["hopplus-mcts"][1] == MCTS_END
    assert all(curve.iterations == curve.points[-1][0] for curve in REWARD_CURVES.values())
