"""Diagnosis of a training of planning agents: do they predict each other, plan, earn, and stay at their best?

The original's HOP+ never earned more than random players, and its HOP+-MCTS rose and fell again. Which of the two a
training does, and whether prediction, planning or acting is to blame, shows in its record beside its curves. A pair's
scores alone mislead: an almost random player is badly predicted by the best model too, so its own randomness, the
floor, stands beside the cross-entropy. Letters: S seeds, T iterations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from marlab.hunt.diagnose.checks import Check, Picture, Section, Table, run_pictures, save_picture
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, BETA, ENV_STEPS, REWARD, SCALED_SPREAD, team_optimum
from marlab.hunt.players.published import (
    ONLINE_BROKEN,
    ONLINE_CURVES,
    RANDOM_CE,
    RANDOM_REWARD,
    RANDOM_TOP1,
    RANDOM_TOP3,
    REWARD_CURVES,
    Point,
)
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.report.curves import Line, column, last, level, seed_columns
from marlab.lab.report.figures import Curve, curves, label, reference_lines
from marlab.lab.report.style import GREY, colour, legend, legends, panels, save, styled
from marlab.lab.runs.files import read_table, trusting
from marlab.lab.runs.metrics import read_metrics

TITLES = {"ppo": "PPO", "ps-ppo": "PS-PPO", "hop": "HOP", "hopplus": "HOP+", "hopplus-mcts": "HOP+-MCTS"}
TIMES = {"1 s": 1 / 3600, "10 s": 1 / 360, "1 min": 1 / 60, "10 min": 1 / 6, "1 h": 1.0, "10 h": 10.0}
"""Hours by the name they have on an axis."""
TAG = re.compile(r"seed_(\d+)/moa/(\d+)->(\d+)/(\S+)")
CHANCE = {"acc_top1": RANDOM_TOP1, "acc_top3": RANDOM_TOP3, "ce_loss": RANDOM_CE}
SCORES = {"acc_top1": "top-1", "acc_top3": "top-3", "ce_loss": "cross-entropy", "floor": "floor", "excess": "excess"}
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
LEVEL_HEADER = ("training", "seeds", "iterations", "hours", "start", "highest", "end", "end / highest")
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """A run of `hunt train` of any variant, as its record tells it."""

    name: str
    path: Path
    variant: str
    game: GameConfig
    alone: bool  # all seats learn
    seeds: tuple[int, ...]
    rows: list[dict[str, Any]]
    reward: Line  # [S, T] mean reward of all players, NaN where no episode ended
    share: Line  # [T] of the training that is done; below 1 at the end of one that was stopped
    hours: Line  # [T] spent playing and learning so far, for all seeds together
    evaluated: float | None  # mean reward on fresh episodes, where the training has come that far

    @property
    def title(self) -> str:
        return TITLES.get(self.variant, self.variant)

    @property
    def published(self) -> str:
        """The variant, if the original has published curves of it and of this game."""
        return self.variant if self.variant in REWARD_CURVES and self.game == GameConfig() else ""

    def level(self) -> tuple[float, float]:
        """(highest mean over some iterations, mean of the last tenth), of the mean over seeds."""
        return level(over_seeds(self.reward))

    def values(self, name: str) -> Numbers:
        """[T] a recorded mean over seeds, NaN where it is missing."""
        return column(self.rows, name)


def open_training(path: Path, name: str) -> Training:
    """Read a run of `hunt train`."""
    stored = read_table(path / "config.json", UserError)
    if not {"variant", "game", "total_steps"} <= set(stored):
        raise UserError(f"{path} is not a run of `marlab hunt train`: its config names no variant, game and steps.")
    if not isinstance(stored["total_steps"], int) or stored["total_steps"] < 1:
        raise UserError(f"{path / 'config.json'} names {str(stored['total_steps'])[:40]} steps.")
    rows = read_metrics(path / "metrics.jsonl")
    seeds = sorted({int(match[1]) for key in (rows[0] if rows else {}) if (match := re.match(r"seed_(\d+)/", key))})
    if not seeds:
        raise UserError(f"{path} has no metrics to draw: its metrics.jsonl is missing, empty or of another command.")
    spent = column(rows, "time/rollout") + column(rows, "time/train")
    share = np.minimum(column(rows, ENV_STEPS) / stored["total_steps"], 1.0)
    done = path / "evaluation.json"
    evaluation = read_table(done, UserError) if done.exists() else None
    with trusting(f"{done} is not an evaluation"):
        found = None if evaluation is None else float(evaluation["sampled"]["over_seeds"]["reward"]["value"])
    return Training(
        name, path, stored["variant"], from_dict(GameConfig, stored["game"], f"{path / 'config.json'}, game"),
        not stored.get("agent_roles"), tuple(seeds), rows, seed_columns(rows, seeds, REWARD), share,
        np.nancumsum(spent) / 3600, found,
    )  # fmt: skip


@dataclass(frozen=True)
class PairScores:
    """The recorded scores of agents that model each other."""

    steps: NDArray[Any]  # [T]
    scores: dict[tuple[int, int], dict[str, Numbers]]  # by pair (players from 1) and score: [S, T], NaN where absent

    def over_pairs(self, score: str) -> Numbers:
        """[S, T] mean over all pairs that have the score, NaN where none has."""
        lines = [named[score] for named in self.scores.values() if score in named]
        return over_seeds(np.stack(lines)) if lines else np.full((1, len(self.steps)), np.nan)


def read_pairs(rows: Sequence[dict[str, Any]]) -> PairScores:
    """The scores of every pair and seed; a run without models of others has no pairs."""
    by_pair: dict[tuple[int, int], dict[str, dict[int, Numbers]]] = {}
    for t, row in enumerate(rows):
        for key, value in row.items():
            tag = TAG.fullmatch(key)
            if tag is not None and isinstance(value, int | float):
                lines = by_pair.setdefault((int(tag[2]), int(tag[3])), {}).setdefault(tag[4], {})
                lines.setdefault(int(tag[1]), np.full(len(rows), np.nan))[t] = value
    seeds = sorted({seed for named in by_pair.values() for lines in named.values() for seed in lines})
    never = np.full(len(rows), np.nan)
    scores = {
        pair: {k: np.stack([lines.get(seed, never) for seed in seeds]) for k, lines in named.items()}
        for pair, named in sorted(by_pair.items())
    }
    return PairScores(np.array([row["step"] for row in rows]), scores)


def over_seeds(lines: Numbers) -> Numbers:
    """[...] mean over the first axis of what is known, NaN where nothing is."""
    known = np.isfinite(lines)
    return np.where(known.any(0), np.nansum(lines, 0) / np.maximum(known.sum(0), 1), np.nan)


def last_mean(values: Numbers | None) -> float | None:
    """Mean of what is known in the last tenth [..., T]; None without any figure."""
    if values is None:
        return None
    tail = last(values)
    return float(np.nanmean(tail)) if np.isfinite(tail).any() else None


def diagnose_training(run: Training, gates: Gates, out: Path | None) -> list[Section]:
    """Checks, tables and, in `out`, pictures of a training, and of what its agents foretell of each other."""
    pairs = read_pairs(run.rows)
    section = Section(f"Training of {run.title}, {run.name}")
    if pairs.scores:
        excess = last_mean(pairs.over_pairs("excess"))
        name = "excess over the floor in training"
        section.checks = [Check("MOA", name, excess, gates.online_excess, "at most", run=run.name)]
        section.tables = [_online_table(run, pairs)]
    section.checks += [*_planner_checks(run, gates), *_self_play_checks(run, gates)]
    plan = {title: run.values(name) for name, title in PLAN.items()}
    rows = [
        (title, float(v[np.isfinite(v).argmax()]), last_mean(v)) for title, v in plan.items() if np.isfinite(v).any()
    ]
    section.tables += [
        Table("Mean reward over training", LEVEL_HEADER, level_rows([run])),
        Table("The planner at the start and over the last tenth", ("figure", "start", "end"), rows),
    ]
    section.figures["training"] = {
        "levels": [dict(zip(LEVEL_HEADER, row)) for row in level_rows([run])],
        "plan": {name: last_mean(run.values(name)) for name in PLAN},
    }
    if out is not None:
        captions = {"training": "Reward, what players left with, behaviour, sharpness of plans"}
        section.pictures = run_pictures(run.path, out, run.name, captions)
        section.pictures += [_draw_online(run, pairs, out)] if pairs.scores else []
    return [section, _pairs_section(run.name, pairs, out)]


def _planner_checks(run: Training, gates: Gates) -> list[Check]:
    spread = last_mean(run.values(BETA) * run.values(SCALED_SPREAD))
    improved, entropy = last_mean(run.values("plan/improved_share")), last_mean(run.values(BEHAVIOUR_ENTROPY))
    return [
        Check("planner", "plans no worse than the prior", improved, gates.improved, "at least", run=run.name),
        Check("planner", "beta times spread of Q", spread, gates.scaled_spread, "at least", run=run.name),
        Check("planner", "entropy of behaviour", entropy, gates.behaviour_entropy, "at most", run=run.name),
    ]


def _self_play_checks(run: Training, gates: Gates) -> list[Check]:
    """Only where all seats learn: among rule-based players a team's reward says little about the learner."""
    if not run.alone:
        return []
    best, end = run.level()
    reward, needs = end if run.evaluated is None else run.evaluated, ("planner", "MOA")
    values = [value for _, value in REWARD_CURVES[run.published].points] if run.published else []
    reached, stayed = (values[-1], values[-1] / max(values)) if values else (None, None)
    wanted, name = gates.self_play_share * team_optimum(run.game), "last tenth over the highest"
    return [
        Check("self-play", "mean reward", reward, wanted, "at least", reached, needs, run.name),
        Check("self-play", name, end / best, gates.stayed, "at least", stayed, needs, run.name),
    ]


# --- predictions of the others ----------------------------------------------------------------------------------------


def _online_table(run: Training, pairs: PairScores) -> Table:
    original = ONLINE_CURVES.get(run.published)
    published = {} if original is None else original.scores
    rows: list[tuple[Any, ...]] = []
    for score, title in SCORES.items():
        best = max if score.startswith("acc") else min
        points = published.get(score)
        theirs = (best(value for _, value in points), points[-1][1]) if points else (None, None)
        rows.append((title, *_best_and_end(pairs.over_pairs(score), best), *theirs))
    for action, name in enumerate(ACTION_NAMES):
        ours = _best_and_end(pairs.over_pairs(f"per_class_acc/{action}"), max)
        end = None if original is None else original.recall.get(action)
        rows.append((f"recall of {name.replace('_', ' ')}", *ours, None, end))
    header = ("mean over pairs", "best", "end", "best (original)", "end (original)")
    return Table("Predictions of the others in training", header, rows)


def _best_and_end(lines: Numbers, best: Callable[..., Any]) -> tuple[float | None, float | None]:
    """Best iteration and last tenth of the mean over seeds [S, T]."""
    mean = over_seeds(lines)
    known = mean[np.isfinite(mean)]
    return (float(best(known)), last_mean(lines)) if len(known) else (None, None)


def _pairs_section(name: str, pairs: PairScores, out: Path | None) -> Section:
    """The pairs at the end of training beside the original's."""
    section = Section(f"Models of others in training, {name}")
    if not pairs.scores:
        section.remarks.append("This run has no models of others: nothing was recorded about pairs.")
        return section
    ends = {f"{i}->{j}": {k: last_mean(v) for k, v in named.items()} for (i, j), named in pairs.scores.items()}
    rows: list[tuple[Any, ...]] = [
        (pair.replace("->", " -> "), *(named.get(key) for key in SCORES)) for pair, named in ends.items()
    ]
    original = (f"{low:g} to {high:g}" for low, high in ONLINE_BROKEN.values())
    rows.append(("original, before its buffer was mended", *original, None, None))
    title = "Every pair, mean over seeds and the last tenth of the iterations"
    section.tables.append(Table(title, ("observer -> other", *SCORES.values()), rows))
    section.figures["pairs"] = ends
    if out is not None:
        section.pictures += [_draw_pairs(name, pairs, out), _draw_recall(name, pairs, out)]
    return section


def _draw_online(run: Training, pairs: PairScores, out: Path) -> Picture:
    """Scores of the models of others, mean over pairs, and the recall of every action."""
    original = ONLINE_CURVES.get(run.published)
    figure, axes = panels(2, 2, size=(7.6, 5.6), title="Predictions of the others in training")
    steps = pairs.steps
    for ax, (score, chance) in zip(axes, CHANCE.items()):
        nats = score == "ce_loss"
        lines = {"mean over pairs": Curve(steps, pairs.over_pairs(score))}
        lines |= {"floor: the players' own randomness": Curve(steps, pairs.over_pairs("floor"))} if nats else {}
        title, unit = SCORES[score], "[nats]" if nats else "[share of steps]"
        curves(ax, lines, xlabel="iteration", ylabel=f"{title} {unit}", title=title)
        if original is not None and score in original.scores:
            _draw_points(ax, original.scores[score], "original, approximate points")
        ax.set_ylim(0, 2.0 if nats else 1.02)
        if run.game == GameConfig():
            reference_lines(ax, {"random": chance})
    classes = {
        name.replace("_", " "): Curve(steps, over_seeds(pairs.over_pairs(f"per_class_acc/{a}")))
        for a, name in enumerate(ACTION_NAMES)
    }
    title = "every action, mean over seeds"
    curves(axes[3], classes, xlabel="iteration", ylabel="recall [share of steps]", title=title)
    axes[3].set_ylim(-0.02, 1.02)
    if original is not None:
        levels: dict[float, list[int]] = {}
        for action, value in original.recall.items():
            levels.setdefault(value, []).append(action)
        names = {
            f"original's {'others' if len(a) > 1 else ACTION_NAMES[a[0]].replace('_', ' ')}": v
            for v, a in levels.items()
        }
        reference_lines(axes[3], names)
    legends(*axes)
    caption = "Top-1, top-3, cross-entropy and recall, mean over pairs" + (f"; {original.remark}" if original else "")
    return save_picture(figure, out, f"online-{run.name}.png", caption)


@styled
def _draw_points(ax: Axes, points: tuple[Point, ...], name: str) -> None:
    """A curve of the original: a few published points, joined."""
    x, y = zip(*points)
    ax.plot(x, y, label=name, color=GREY, linestyle=":", marker="o", markersize=9, markerfacecolor="white",
            markeredgewidth=2)  # fmt: skip


def _draw_pairs(name: str, pairs: PairScores, out: Path) -> Picture:
    """A column per observer, a row per score, a line per other player."""
    shown, steps = list(CHANCE), pairs.steps
    observers, others = (sorted({pair[k] for pair in pairs.scores}) for k in (0, 1))
    figure, axes = panels(len(shown), len(observers), size=(4.4, 3.0), title="Predictions of every other player")
    never = np.full((1, len(steps)), np.nan)
    for ax, (row, place) in zip(axes, np.ndindex(len(shown), len(observers))):
        score, i = shown[row], observers[place]
        lines = {
            f"about player {j}": Curve(steps, over_seeds(pairs.scores.get((i, j), {}).get(score, never)))
            for j in others
        }
        if score == "ce_loss":
            floors = [over_seeds(s.get("floor", never)) for (a, _), s in pairs.scores.items() if a == i]
            lines["floor, mean of the others"] = Curve(steps, over_seeds(np.stack(floors)))
        curves(ax, lines, xlabel="", ylabel="")
        label(
            ax,
            "iteration" if row == len(shown) - 1 else "",
            SCORES[score] if place == 0 else "",
            f"observer {i}" if row == 0 else None,
        )
        ax.set_ylim(0, 1 if score != "ce_loss" else None)
    legend(figure)
    return save_picture(figure, out, f"pairs-{name}.png", "Top-1, top-3 and cross-entropy of every pair")


def _draw_recall(name: str, pairs: PairScores, out: Path) -> Picture:
    """A panel per pair, a line per action."""
    observers = sorted({i for i, _ in pairs.scores})
    wide = max(sum(i == observer for i, _ in pairs.scores) for observer in observers)
    figure, axes = panels(len(observers), wide, size=(4.4, 2.6), title="Recall of every action, by pair")
    never = np.full((1, len(pairs.steps)), np.nan)
    for place, (ax, ((i, j), named)) in enumerate(zip(axes, pairs.scores.items())):
        lines = {
            action: Curve(pairs.steps, over_seeds(named.get(f"per_class_acc/{a}", never)))
            for a, action in enumerate(ACTION_NAMES)
        }
        x, y = "iteration" if i == observers[-1] else "", "" if place % wide else "recall"
        curves(ax, lines, xlabel=x, ylabel=y, title=f"{i} about {j}")
        ax.set_ylim(0, 1.03)
    legend(figure)
    return save_picture(figure, out, f"pair-recall-{name}.png", "Recall of every action for every pair")


# --- trainings side by side -------------------------------------------------------------------------------------------


def level_rows(trainings: Sequence[Training]) -> list[tuple[Any, ...]]:
    """Where every training came to; a variant's first row is followed by the original's, where it has one."""
    rows: list[tuple[Any, ...]] = []
    for place, training in enumerate(trainings):
        (best, end), known = training.level(), np.isfinite(training.reward).any(0)
        start = float(np.nanmean(training.reward[:, known.argmax()])) if known.any() else float("nan")
        size, hours = training.reward.shape[1], float(training.hours[-1])
        rows.append((training.name, len(training.seeds), size, hours, start, best, end, end / best))
        if training.published and all(before.variant != training.variant for before in trainings[:place]):
            original = REWARD_CURVES[training.published]
            reward = [value for _, value in original.points]
            head = (f"original's {training.title}", 1, original.iterations, original.hours)
            rows.append((*head, reward[0], max(reward), reward[-1], reward[-1] / max(reward)))
    return rows


def draw_trainings(trainings: Sequence[Training], out: Path, *, smooth: int = 1) -> Path:
    """Mean reward, a band over seeds, beside the original's curves of the same variants.

    Trainings differ in what they call an iteration, so curves are compared over the share of the training that is done,
    where the shape shows, and over hours, where the cost shows.
    """
    game = trainings[0].game
    figure, (shape, cost) = panels(1, 2, size=(8.2, 5.6), title="Mean reward per player over training", share_y=True)
    by_share = {t.name: Curve(t.share, t.reward) for t in trainings}
    by_hours = {t.name: Curve(t.hours, t.reward) for t in trainings}
    y = "reward per player and episode"
    curves(shape, by_share, xlabel="share of the training", ylabel=y, title="what it does", smooth=smooth)
    curves(cost, by_hours, xlabel="time (of all seeds together)", ylabel="", title="what it costs", smooth=smooth)
    first = {training.published: index for index, training in reversed([*enumerate(trainings)]) if training.published}
    for index in sorted(first.values()):
        _draw_original(shape, cost, index, trainings[index])
    cost.set_xscale("log")
    cost.set_xticks(list(TIMES.values()), list(TIMES))
    cost.minorticks_off()
    lines = {"team optimum": team_optimum(game)}
    shape.set_ylim(0, 1.05 * lines["team optimum"])
    reference_lines(cost, lines | {"random players": RANDOM_REWARD} if game == GameConfig() else lines)
    legend(figure)
    return save(figure, out)


@styled
def _draw_original(shape: Axes, cost: Axes, index: int, training: Training) -> None:
    """The original's curve of the variant in the colour of our first: a few published points, joined."""
    original = REWARD_CURVES[training.published]
    iterations, reward = zip(*original.points)
    share = np.array(iterations) / original.iterations
    look: dict[str, Any] = {
        "color": colour(index),
        "linestyle": ":",
        "marker": "o",
        "markersize": 9,
        "markerfacecolor": "white",
        "markeredgewidth": 2,
    }
    name = f"original's {training.title}, approximate points"
    for ax, x in ((shape, share), (cost, np.maximum(share, 1 / original.iterations) * original.hours)):
        ax.plot(x, reward, label=name, **look)
        if original.band is not None:
            ax.fill_between(x, *original.band, color=colour(index), alpha=0.10, linewidth=0)
