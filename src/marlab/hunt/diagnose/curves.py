"""Reward over training, read from runs of `hunt train` of any variant, and all of them in one figure.

Trainings differ in what they call an iteration, so curves are compared in two ways: over the share of the training
that is done, where the shape shows (does it rise, does it stay?), and over hours, where the cost shows. Letters: S
seeds, T iterations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from marlab.hunt.diagnose.pairs import over_seeds
from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import ENV_STEPS, REWARD, team_optimum
from marlab.hunt.players.published import RANDOM_REWARD, REWARD_CURVES
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.report.curves import Line, column, level, seed_columns
from marlab.lab.report.figures import Curve, curves, reference_lines
from marlab.lab.report.style import colour, legend, panels, save, styled
from marlab.lab.runs.files import read_table
from marlab.lab.runs.metrics import read_metrics

TITLES = {"ppo": "PPO", "ps-ppo": "PS-PPO", "hop": "HOP", "hopplus": "HOP+", "hopplus-mcts": "HOP+-MCTS"}
TIMES = {"1 s": 1 / 3600, "10 s": 1 / 360, "1 min": 1 / 60, "10 min": 1 / 6, "1 h": 1.0, "10 h": 10.0}
"""Hours by the name they have on an axis."""


@dataclass(frozen=True)
class Training:
    """One training as its record tells it."""

    name: str
    variant: str
    game: GameConfig
    seeds: tuple[int, ...]
    reward: Line  # [S, T] mean reward of all players, NaN where no episode ended
    share: Line  # [T] of the training that is done; below 1 at the end of one that was stopped
    hours: Line  # [T] spent playing and learning so far, for all seeds together

    @property
    def title(self) -> str:
        return TITLES.get(self.variant, self.variant)

    def level(self) -> tuple[float, float]:
        """(highest mean over some iterations, mean of the last tenth), of the mean over seeds."""
        return level(over_seeds(self.reward))


def open_training(path: Path, name: str) -> Training:
    """Read a run of `hunt train`."""
    stored = read_table(path / "config.json", UserError)
    if not {"variant", "game", "total_steps"} <= set(stored):
        raise UserError(f"{path} is not a run of `marlab hunt train`: its config names no variant, game and steps.")
    rows = read_metrics(path / "metrics.jsonl")
    seeds = sorted({int(match[1]) for key in (rows[0] if rows else {}) if (match := re.match(r"seed_(\d+)/", key))})
    if not seeds:
        raise UserError(f"{path} has no metrics to draw: its metrics.jsonl is missing, empty or of another command.")
    spent = column(rows, "time/rollout") + column(rows, "time/train")
    if not isinstance(stored["total_steps"], int) or stored["total_steps"] < 1:
        raise UserError(f"{path / 'config.json'} names {str(stored['total_steps'])[:40]} steps.")
    share = column(rows, ENV_STEPS) / stored["total_steps"]
    game = from_dict(GameConfig, stored["game"], f"{path / 'config.json'}, game")
    return Training(
        name, stored["variant"], game, tuple(seeds), seed_columns(rows, seeds, REWARD), np.minimum(share, 1.0),
        np.nancumsum(spent) / 3600,
    )  # fmt: skip


def draw_trainings(trainings: Sequence[Training], out: Path, *, smooth: int = 1) -> Path:
    """Mean reward over training, a band over seeds, beside the original's curves of the same variants."""
    game = trainings[0].game
    figure, (shape, cost) = panels(1, 2, size=(8.2, 5.6), title="Mean reward per player over training", share_y=True)
    ours = {training.name: training for training in trainings}
    by_share = {name: Curve(t.share, t.reward) for name, t in ours.items()}
    by_hours = {name: Curve(t.hours, t.reward) for name, t in ours.items()}
    y = "reward per player and episode"
    curves(shape, by_share, xlabel="share of the training", ylabel=y, title="what it does", smooth=smooth)
    curves(cost, by_hours, xlabel="time (of all seeds together)", ylabel="", title="what it costs", smooth=smooth)
    if game == GameConfig():
        for variant in dict.fromkeys(training.variant for training in trainings):
            index = next(i for i, training in enumerate(trainings) if training.variant == variant)
            _draw_original(shape, cost, index, trainings[index])
    cost.set_xscale("log")
    cost.set_xticks(list(TIMES.values()), list(TIMES))
    cost.minorticks_off()
    top = team_optimum(game)
    shape.set_ylim(0, 1.05 * top)
    lines = {"team optimum": top}
    reference_lines(cost, lines | {"random players": RANDOM_REWARD} if game == GameConfig() else lines)
    legend(figure)
    return save(figure, out)


@styled
def _draw_original(shape: Axes, cost: Axes, index: int, training: Training) -> None:
    """The original's curve of the variant in the colour of our first: a few published points, joined."""
    original = REWARD_CURVES.get(training.variant)
    if original is None:
        return
    iterations, reward = zip(*original.points)
    share = np.array(iterations) / original.iterations
    look: dict[str, Any] = {
        "color": colour(index), "linestyle": ":", "marker": "o", "markersize": 9, "markerfacecolor": "white",
        "markeredgewidth": 2,
    }  # fmt: skip
    name = f"original's {training.title}, approximate points"
    for ax, x in ((shape, share), (cost, np.maximum(share, 1 / original.iterations) * original.hours)):
        ax.plot(x, reward, label=name, **look)
        if original.band is not None:
            ax.fill_between(x, *original.band, color=colour(index), alpha=0.10, linewidth=0)


def level_rows(trainings: Sequence[Training]) -> list[tuple[Any, ...]]:
    """Where every training came to; a variant's first row is followed by the original's, where it has one."""
    rows: list[tuple[Any, ...]] = []
    for place, training in enumerate(trainings):
        best, end = training.level()
        rows.append((training.name, len(training.seeds), training.reward.shape[1], float(training.hours[-1]),
                     _first(training), best, end, end / best))  # fmt: skip
        original = REWARD_CURVES.get(training.variant)
        shown = any(before.variant == training.variant for before in trainings[:place])
        if original is not None and not shown and training.game == GameConfig():
            reward = [value for _, value in original.points]
            rows.append((f"original's {training.title}", 1, original.iterations, original.hours, reward[0], max(reward),
                         reward[-1], reward[-1] / max(reward)))  # fmt: skip
    return rows


LEVEL_HEADER = ("training", "seeds", "iterations", "hours", "start", "highest", "end", "end / highest")


def _first(training: Training) -> float:
    """Mean reward of the first iteration in which an episode ended."""
    known = np.isfinite(training.reward).any(0)
    return float(np.nanmean(training.reward[:, known.argmax()])) if known.any() else float("nan")
