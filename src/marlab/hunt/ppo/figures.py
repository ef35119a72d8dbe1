"""Figures of a PPO run: reward of the team, of every seat, and what players left the game with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import team_optimum
from marlab.lab.report.figures import Curve, curves, reference_lines
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.metrics import read_metrics

NOTE_REWARD = 2.784
"""Mean reward of the lab note's PPO run at its end (4,657 iterations, 3.31 hours)."""


def draw_curves(metrics: Path, out: Path, game: GameConfig, seeds: Sequence[int]) -> Path:
    """Draw a run's metrics: mean reward, reward per player, and outcomes, against game steps per seed."""
    rows = read_metrics(metrics)
    figure, (reward, seats, outcomes) = panels(1, 3, size=(6.4, 4.4), title="PPO in the stag hunt")
    x = "game steps per seed"
    team = {"all players": _curve(rows, seeds, "charts/episode/avg_reward_per_episode_all_agents")}
    curves(reward, team, xlabel=x, ylabel="reward per player and episode", title="Mean of all players")
    lines = {"team optimum": team_optimum(game)}
    if game == GameConfig():
        lines["lab note, end of its PPO run"] = NOTE_REWARD
    reference_lines(reward, lines)
    players = {
        f"player {i + 1}": _curve(rows, seeds, f"agent_player_{i + 1}/reward_avg_per_episode")
        for i in range(game.players)
    }
    curves(seats, players, xlabel=x, ylabel="reward per episode", title="Each seat")
    kinds = ["none", "hare", *(f"stag_{k}" for k in range(2, game.players + 1))]
    names = {k: k.replace("stag_", "stag shared by ") for k in kinds}
    left = {names[k]: _curve(rows, seeds, f"charts/outcome/{k}") for k in kinds}
    curves(outcomes, left, xlabel=x, ylabel="share of players", title="What players left with")
    legend(seats)
    legend(outcomes)
    return save(figure, out)


def _curve(rows: list[dict[str, Any]], seeds: Sequence[int], name: str) -> Curve:
    """[S, T] one line per seed; iterations in which a seed ended no episode are gaps."""
    x = np.array([row["charts/env_steps"] for row in rows], dtype=float)
    y = [[_number(row.get(f"seed_{seed}/{name}")) for row in rows] for seed in seeds]
    return Curve(x, np.array(y, dtype=float))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
