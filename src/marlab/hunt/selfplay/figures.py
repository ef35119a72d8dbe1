"""Figures of a training of planning agents: reward, outcomes, behaviour beside prediction, and how sharp plans are."""

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

NOTE_PEAK, NOTE_END = 1.5, 0.726
"""Mean reward of the lab note's HOP+-MCTS run: its highest, and at its end (126 iterations, 1.27 days)."""


def draw_training(metrics: Path, out: Path, game: GameConfig, seeds: Sequence[int], title: str) -> Path:
    """Draw a run's metrics against game steps per seed."""
    rows = read_metrics(metrics)
    figure, (reward, outcomes, behaviour, plans) = panels(2, 2, size=(9.0, 3.8), title=title)
    x = "game steps per seed"
    team = {"all players": _per_seed(rows, seeds, "charts/episode/avg_reward_per_episode_all_agents")}
    curves(reward, team, xlabel=x, ylabel="reward per player and episode", title="Mean of all players")
    lines = {"team optimum": team_optimum(game)}
    if game == GameConfig():
        lines |= {"lab note, HOP+-MCTS, highest": NOTE_PEAK, "lab note, HOP+-MCTS, end": NOTE_END}
    reference_lines(reward, lines)
    kinds = ["none", "hare", *(f"stag_{k}" for k in range(2, game.players + 1))]
    left = {k.replace("stag_", "stag shared by "): _per_seed(rows, seeds, f"charts/outcome/{k}") for k in kinds}
    curves(outcomes, left, xlabel=x, ylabel="share of players", title="What players left with")
    shown = {
        "behaviour entropy": _per_seed(rows, seeds, "charts/behaviour_entropy"),
        "cross-entropy of the models of others": _per_seed(rows, seeds, "moa/ce_online"),
        "excess over the floor": _per_seed(rows, seeds, "moa/excess"),
    }
    known = {name: curve for name, curve in shown.items() if np.isfinite(curve.y).any()}
    curves(behaviour, known, xlabel=x, ylabel="nats", title="Behaviour and its prediction")
    beta = np.array([_number(row.get("charts/beta")) for row in rows])
    spread = np.array([_number(row.get("plan/scaled_spread")) for row in rows])
    steps = np.array([row["charts/env_steps"] for row in rows], dtype=float)
    sharp = {"beta x normalised spread": Curve(steps, (beta * spread)[None]),
             "Q-spread, reward units": _all(rows, "plan/q_spread"),
             "improvement, reward units": _all(rows, "plan/improvement")}  # fmt: skip
    curves(plans, sharp, xlabel=x, ylabel="", title="How sharp plans are")
    for axis in (outcomes, behaviour, plans):
        legend(axis)
    return save(figure, out)


def _per_seed(rows: list[dict[str, Any]], seeds: Sequence[int], name: str) -> Curve:
    """[S, T] one line per seed; iterations without the figure are gaps."""
    x = np.array([row["charts/env_steps"] for row in rows], dtype=float)
    return Curve(x, np.array([[_number(row.get(f"seed_{seed}/{name}")) for row in rows] for seed in seeds]))


def _all(rows: list[dict[str, Any]], name: str) -> Curve:
    x = np.array([row["charts/env_steps"] for row in rows], dtype=float)
    return Curve(x, np.array([[_number(row.get(name)) for row in rows]]))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
