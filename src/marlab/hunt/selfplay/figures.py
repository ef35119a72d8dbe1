"""Figures of a training of planning agents: reward, outcomes, behaviour beside prediction, and how sharp plans are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, BETA, ENV_STEPS, EXCESS, ONLINE_CROSS_ENTROPY, SCALED_SPREAD
from marlab.hunt.players.published import MCTS_END, MCTS_PEAK
from marlab.hunt.ppo.figures import X, draw_outcomes, draw_reward, seed_curve
from marlab.lab.report.curves import column
from marlab.lab.report.figures import Curve, curves
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.metrics import read_metrics


def draw_training(metrics: Path, out: Path, game: GameConfig, seeds: Sequence[int], title: str) -> Path:
    """Draw a run's metrics against game steps per seed."""
    rows = read_metrics(metrics)
    figure, (reward, outcomes, behaviour, plans) = panels(2, 2, size=(9.0, 3.8), title=title)
    published = {"the original's HOP+-MCTS, highest": MCTS_PEAK, "the original's HOP+-MCTS, end": MCTS_END}
    draw_reward(reward, rows, seeds, game, published)
    draw_outcomes(outcomes, rows, seeds, game)
    shown = {
        "behaviour entropy": seed_curve(rows, seeds, BEHAVIOUR_ENTROPY),
        "cross-entropy of the models of others": seed_curve(rows, seeds, ONLINE_CROSS_ENTROPY),
        "excess over the floor": seed_curve(rows, seeds, EXCESS),
    }
    known = {name: curve for name, curve in shown.items() if np.isfinite(curve.y).any()}
    curves(behaviour, known, xlabel=X, ylabel="nats", title="Behaviour and its prediction")
    steps = column(rows, ENV_STEPS)
    sharp = {
        "beta x normalised spread": Curve(steps, column(rows, BETA) * column(rows, SCALED_SPREAD)),
        "Q-spread, reward units": Curve(steps, column(rows, "plan/q_spread")),
        "improvement, reward units": Curve(steps, column(rows, "plan/improvement")),
    }
    curves(plans, sharp, xlabel=X, ylabel="", title="How sharp plans are")
    for axis in (outcomes, behaviour, plans):
        legend(axis)
    return save(figure, out)
