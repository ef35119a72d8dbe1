"""Figures of a PPO run: reward of the team, of every seat, and what players left the game with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import ENV_STEPS, REWARD, team_optimum
from marlab.hunt.players.published import PPO_END
from marlab.lab.report.curves import column, seed_columns
from marlab.lab.report.figures import Curve, curves, reference_lines
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.metrics import read_metrics

X = "game steps per seed"


def draw_curves(metrics: Path, out: Path, game: GameConfig, seeds: Sequence[int]) -> Path:
    """Draw a run's metrics: mean reward, reward per player, and outcomes, against game steps per seed."""
    rows = read_metrics(metrics)
    figure, (reward, seats, outcomes) = panels(1, 3, size=(6.4, 4.4), title="PPO in the stag hunt")
    draw_reward(reward, rows, seeds, game, {"the original, end of its PPO run": PPO_END})
    players = {
        f"player {i + 1}": seed_curve(rows, seeds, f"episode/reward_player_{i + 1}") for i in range(game.players)
    }
    curves(seats, players, xlabel=X, ylabel="reward per episode", title="Each seat")
    draw_outcomes(outcomes, rows, seeds, game)
    legend(seats)
    legend(outcomes)
    return save(figure, out)


def draw_reward(
    ax: Any, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int], game: GameConfig, published: Mapping[str, float]
) -> None:
    """Mean reward beside the team optimum and, in the game they are about, published figures."""
    team = {"all players": seed_curve(rows, seeds, REWARD)}
    curves(ax, team, xlabel=X, ylabel="reward per player and episode", title="Mean of all players")
    lines = {"team optimum": team_optimum(game)}
    reference_lines(ax, {**lines, **published} if game == GameConfig() else lines)


def draw_outcomes(ax: Any, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int], game: GameConfig) -> None:
    kinds = ["none", "hare", *(f"stag_{k}" for k in range(2, game.players + 1))]
    left = {k.replace("stag_", "stag shared by "): seed_curve(rows, seeds, f"outcome/{k}") for k in kinds}
    curves(ax, left, xlabel=X, ylabel="share of players", title="What players left with")


def seed_curve(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int], name: str) -> Curve:
    """One line per seed against game steps; iterations without the figure are gaps."""
    return Curve(column(rows, ENV_STEPS), seed_columns(rows, seeds, name))
