"""Diagnosis of a training of planning agents: do they predict each other, plan, earn, and stay at their best?

The original's HOP+ never earned more than random players, and its HOP+-MCTS rose and fell again. Which of the two a
training does, and whether prediction, planning or acting is to blame, shows in its record beside its curves.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from marlab.hunt.diagnose.curves import LEVEL_HEADER, Training, level_rows, open_training
from marlab.hunt.diagnose.pairs import PairRun, open_pair_run, over_seeds
from marlab.hunt.diagnose.parts import Check, Picture, Section, Table, save_picture
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, BETA, SCALED_SPREAD, team_optimum
from marlab.hunt.players.published import (
    ONLINE_CURVES,
    RANDOM_CE,
    RANDOM_ENTROPY,
    RANDOM_TOP1,
    RANDOM_TOP3,
    REWARD_CURVES,
    Point,
)
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.errors import UserError
from marlab.lab.report.curves import column, last
from marlab.lab.report.figures import Curve, curves, reference_lines
from marlab.lab.report.style import GREY, legends, panels, styled
from marlab.lab.runs.files import read_json, read_table, trusting
from marlab.lab.runs.metrics import read_metrics

SCORES = {"acc_top1": "top-1", "acc_top3": "top-3", "ce_loss": "cross-entropy"}
PLAN = {
    "plan/root_value": "value of the root [reward]",
    "plan/q_spread": "spread of Q [reward]",
    "plan/entropy": "entropy of the plan [nats]",
    "plan/kl_to_prior": "divergence from the prior [nats]",
    "plan/improvement": "improvement on the prior [reward]",
    "plan/improved_share": "plans no worse than the prior [share]",
    "plan/depth": "mean depth [steps]",
    "plan/depth_max": "greatest depth [steps]",
    "plan/terminal_share": "simulations that came to an end [share]",
    "plan/disagreement": "disagreement between trees [reward]",
    "time/select": "time in select [s]",
    "time/expand": "time in expand [s]",
    "time/backup": "time in backup [s]",
}


@dataclass(frozen=True)
class HopRun:
    """A run of `hunt train` with planning agents, opened."""

    name: str
    training: Training
    pairs: PairRun
    metrics: list[dict[str, Any]]
    evaluated: float | None  # mean reward on fresh episodes, where the training has come that far
    alone: bool  # all seats learn

    @property
    def published(self) -> str | None:
        """The variant, if the original has published curves of it and of this game."""
        known = self.training.variant in REWARD_CURVES and self.training.game == GameConfig()
        return self.training.variant if known else None

    def values(self, name: str) -> NDArray[np.float64]:
        """[T] a recorded mean over seeds, NaN where it is missing."""
        return column(self.metrics, name)

    def end(self, name: str) -> float | None:
        """Mean over the last tenth of the training; None without any figure."""
        return last_mean(self.values(name))


def last_mean(values: NDArray[np.float64]) -> float | None:
    """Mean of what is known in the last tenth [..., T]."""
    tail = last(values)
    return float(np.nanmean(tail)) if np.isfinite(tail).any() else None


def open_hop_run(path: Path, name: str) -> HopRun:
    """Load everything that a diagnosis needs."""
    pairs = open_pair_run(path, name)
    done = path / "evaluation.json"
    evaluation = read_json(done, UserError) if done.exists() else None
    with trusting(f"{done} is not an evaluation"):
        evaluated = None if evaluation is None else float(evaluation["sampled"]["over_seeds"]["reward"]["value"])
    alone = not read_table(path / "config.json", UserError).get("agent_roles")
    return HopRun(name, open_training(path, name), pairs, read_metrics(path / "metrics.jsonl"), evaluated, alone)


def diagnose_hop(run: HopRun, gates: Gates, out: Path | None) -> Section:
    """Checks, tables and, in `out`, pictures of a training."""
    section = Section(f"Training of {run.training.title}, {run.name}")
    section.checks = [*_moa_checks(run, gates), *_planner_checks(run, gates), *_self_play_checks(run, gates)]
    section.tables = [
        Table("Mean reward over training", LEVEL_HEADER, level_rows([run.training])),
        Table("The planner at the start and over the last tenth", ("figure", "start", "end"), _plan_rows(run)),
    ]
    if run.pairs.scores:
        section.tables.insert(0, _online_table(run))
    section.figures["training"] = {
        "levels": [dict(zip(LEVEL_HEADER, level)) for level in level_rows([run.training])],
        "plan": {name: run.end(name) for name in PLAN},
    }
    if out is not None:
        section.pictures = [_draw_reward(run, gates, out)]
        if run.pairs.scores:
            section.pictures.append(_draw_online(run, out))
    return section


# --- checks ---------------------------------------------------------------------------------------------------------


def _moa_checks(run: HopRun, gates: Gates) -> list[Check]:
    if not run.pairs.scores:
        return []
    excess = last_mean(run.pairs.over_pairs("excess"))
    return [Check("MOA", "excess over the floor in training", excess, gates.online_excess, "at most", run=run.name)]


def _planner_checks(run: HopRun, gates: Gates) -> list[Check]:
    spread = last_mean(run.values(BETA) * run.values(SCALED_SPREAD))
    entropy = run.end(BEHAVIOUR_ENTROPY)
    return [
        Check("planner", "plans no worse than the prior", run.end("plan/improved_share"), gates.improved, "at least",
              run=run.name),
        Check("planner", "beta times spread of Q", spread, gates.scaled_spread, "at least", run=run.name),
        Check("planner", "entropy of behaviour", entropy, gates.behaviour_entropy, "at most", run=run.name),
    ]  # fmt: skip


def _self_play_checks(run: HopRun, gates: Gates) -> list[Check]:
    """Only where all seats learn: among rule-based players a team's reward says little about the learner."""
    if not run.alone:
        return []
    best, end = run.training.level()
    reward = end if run.evaluated is None else run.evaluated
    needs = ("planner", "MOA")
    original = REWARD_CURVES[run.published] if run.published else None
    values = [value for _, value in original.points] if original else []
    level = values[-1] if values else None
    stayed = values[-1] / max(values) if values else None
    wanted = gates.self_play_share * team_optimum(run.training.game)
    return [
        Check("self-play", "mean reward", reward, wanted, "at least", level, needs, run.name),
        Check(
            "self-play", "last tenth over the highest", end / best, gates.stayed, "at least", stayed, needs, run.name
        ),
    ]


# --- tables ---------------------------------------------------------------------------------------------------------


def _online_table(run: HopRun) -> Table:
    original = ONLINE_CURVES.get(run.published or "")
    published = {} if original is None else original.scores
    rows: list[tuple[Any, ...]] = []
    for score, title in SCORES.items():
        rows.append((title, *_best_and_end(run.pairs.over_pairs(score), best=min if score == "ce_loss" else max),
                     *_published(published.get(score, ()), best=min if score == "ce_loss" else max)))  # fmt: skip
    for score in ("floor", "excess"):
        rows.append((score, *_best_and_end(run.pairs.over_pairs(score), best=min), None, None))
    for action, name in enumerate(ACTION_NAMES):
        lines = run.pairs.over_pairs(f"per_class_acc/{action}")
        rows.append((f"recall of {name.replace('_', ' ')}", *_best_and_end(lines, best=max), None,
                     None if original is None else original.recall.get(action)))  # fmt: skip
    header = ("mean over pairs", "best", "end", "best (original)", "end (original)")
    return Table("Predictions of the others in training", header, rows)


def _best_and_end(lines: NDArray[np.float64], best: Any) -> tuple[float | None, float | None]:
    """Best iteration and last tenth of the mean over seeds [S, T]."""
    mean = over_seeds(lines)
    known = mean[np.isfinite(mean)]
    return (float(best(known)), last_mean(lines)) if len(known) else (None, None)


def _published(points: tuple[Point, ...], best: Any) -> tuple[float | None, float | None]:
    return (best(value for _, value in points), points[-1][1]) if points else (None, None)


def _plan_rows(run: HopRun) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for name, title in PLAN.items():
        values = run.values(name)
        if np.isfinite(values).any():
            rows.append((title, float(values[np.isfinite(values).argmax()]), last_mean(values)))
    return rows


# --- pictures -------------------------------------------------------------------------------------------------------


def _draw_reward(run: HopRun, gates: Gates, out: Path) -> Picture:
    """Reward beside the original's; behaviour beside its prediction; how sharp plans are."""
    title = f"Training of {run.training.title}"
    figure, (reward, behaviour, plans) = panels(1, 3, size=(6.6, 5.4), title=title)
    steps = run.pairs.steps
    curves(reward, {"ours": Curve(steps, run.training.reward)}, xlabel="iteration", ylabel="reward per player",
           title="mean reward")  # fmt: skip
    if run.published:
        original = REWARD_CURVES[run.published]
        _draw_points(reward, original.points, "original, approximate points", original.band)
    best = team_optimum(run.training.game)
    reward.set_ylim(0, 1.05 * best)
    reference_lines(reward, {"optimum": best, "gate": gates.self_play_share * best})
    shown = {"entropy of behaviour": run.values(BEHAVIOUR_ENTROPY),
             "excess of the models of others": run.values("moa/excess")}  # fmt: skip
    lines = {name: Curve(steps, values) for name, values in shown.items() if np.isfinite(values).any()}
    curves(behaviour, lines, xlabel="iteration", ylabel="nats", title="how random, how well foretold")
    behaviour.set_ylim(0, 1.6)
    reference_lines(behaviour, {"random players": RANDOM_ENTROPY, "entropy gate": gates.behaviour_entropy,
                                "excess gate": gates.online_excess})  # fmt: skip
    spread = run.values(BETA) * run.values(SCALED_SPREAD)
    sharp = {"beta times normalised spread": Curve(steps, spread),
             "spread of Q [reward]": Curve(steps, run.values("plan/q_spread"))}  # fmt: skip
    curves(plans, sharp, xlabel="iteration", ylabel="", title="how sharp plans are")
    plans.set_ylim(bottom=0)
    reference_lines(plans, {"gate": gates.scaled_spread})
    legends(reward, behaviour, plans)
    return save_picture(figure, out, f"training-{run.name}.png", f"{title}: reward, behaviour, sharpness of plans")


def _draw_online(run: HopRun, out: Path) -> Picture:
    """Scores of the models of others, mean over pairs, and the recall of every action."""
    original = ONLINE_CURVES.get(run.published or "")
    figure, axes = panels(2, 2, size=(7.6, 5.6), title="Predictions of the others in training")
    steps, pairs = run.pairs.steps, run.pairs
    published = {} if original is None else original.scores
    chance = {"acc_top1": RANDOM_TOP1, "acc_top3": RANDOM_TOP3, "ce_loss": RANDOM_CE}
    for ax, (score, title) in zip(axes, SCORES.items()):
        lines = {"mean over pairs": Curve(steps, pairs.over_pairs(score))}
        if score == "ce_loss":
            lines["floor: the players' own randomness"] = Curve(steps, pairs.over_pairs("floor"))
        unit = "[nats]" if score == "ce_loss" else "[share of steps]"
        curves(ax, lines, xlabel="iteration", ylabel=f"{title} {unit}", title=title)
        if score in published:
            _draw_points(ax, published[score], "original, approximate points")
        ax.set_ylim(0, 2.0 if score == "ce_loss" else 1.02)
        if run.training.game == GameConfig():
            reference_lines(ax, {"random": chance[score]})
    classes = {name.replace("_", " "): Curve(steps, over_seeds(pairs.over_pairs(f"per_class_acc/{a}")))
               for a, name in enumerate(ACTION_NAMES)}  # fmt: skip
    curves(
        axes[3], classes, xlabel="iteration", ylabel="recall [share of steps]", title="every action, mean over seeds"
    )
    axes[3].set_ylim(-0.02, 1.02)
    if original is not None:
        levels: dict[float, list[int]] = {}
        for action, value in original.recall.items():
            levels.setdefault(value, []).append(action)
        names = {f"original's {'others' if len(a) > 1 else ACTION_NAMES[a[0]].replace('_', ' ')}": v
                 for v, a in levels.items()}  # fmt: skip
        reference_lines(axes[3], names)
    legends(*axes)
    caption = "Top-1, top-3, cross-entropy and recall, mean over pairs" + (f"; {original.remark}" if original else "")
    return save_picture(figure, out, f"online-{run.name}.png", caption)


@styled
def _draw_points(ax: Axes, points: tuple[Point, ...], name: str, band: tuple[float, float] | None = None) -> None:
    """A curve of the original: a few published points, joined."""
    x, y = zip(*points)
    ax.plot(x, y, label=name, color=GREY, linestyle=":", marker="o", markersize=9, markerfacecolor="white",
            markeredgewidth=2)  # fmt: skip
    if band is not None:
        ax.fill_between(x, *band, color=GREY, alpha=0.15, linewidth=0)
