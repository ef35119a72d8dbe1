"""Pictures of the models of others, each with the original's figures or the best possible ones beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.collections import PathCollection

from marlab.hunt.diagnose.goals import ORIGINAL, GoalRun, Judged
from marlab.hunt.diagnose.online import game_of
from marlab.hunt.diagnose.parts import Picture, Section, save_picture
from marlab.hunt.game.rules import ACTION_NAMES, Game
from marlab.hunt.others.codes import two_dimensions
from marlab.hunt.others.config import BeliefConfig
from marlab.hunt.players.published import CONFUSION, ROWS, TOP1, TOP3, VAE_LOSSES
from marlab.hunt.players.rollout import HARE, OUTCOMES, STAG, captures, moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.belief_report import BeliefSource, exact_source
from marlab.hunt.pretraining.report import codebook_or_labels, learned_source
from marlab.lab.report.figures import Curve, bars, curves, label, reference_lines, reliability, scatter
from marlab.lab.report.heat import confusion
from marlab.lab.report.style import COLOURS, DASHES, INK, legend, legends, panels, styled
from marlab.lab.runs.metrics import column
from marlab.lab.runs.rng import Rngs


def draw_goals(run: GoalRun, splits: dict[str, Judged], section: Section, out: Path) -> None:
    """Draw everything that the run has data for, and list it in the section."""
    validation = splits["validation"]
    pictures = [
        _losses(run, out), _epochs(run, validation, out), _confusion(run, validation, out),
        _recall(run, validation, out), _reliability(run, validation, out), _transfer(run, section, out),
    ]  # fmt: skip
    if validation.predicted.code is not None:
        pictures.append(_codes(run, validation, out))
    if "belief" in section.figures:
        pictures += [_belief_speed(run, section, out), _belief_episode(run, out)]
    section.pictures += [p for p in pictures if p is not None]


def _losses(run: GoalRun, out: Path) -> Picture | None:
    joined: dict[str, list[float]] = {}
    for row in run.metrics:
        for name, values in row.get("curve", {}).items():
            joined.setdefault(name, []).extend(values)
    if not joined.get("step"):
        return None
    latent = run.loaded.models.vae is not None
    figure, axes = panels(1, 3 if latent else 1, size=(6.0, 5.4), title="Training of the models of others")
    steps, x = joined["step"], "optimiser step"
    shown = {"prediction of actions": "policy", "reconstruction": "recon", "total": "total"}
    lines = {name: Curve(steps, joined[key]) for name, key in shown.items() if any(joined[key])}
    curves(axes[0], lines, xlabel=x, ylabel="loss [nats]", title="losses")
    original = VAE_LOSSES["moa" if run.config.vae_loss == "moa" else "recon"]
    axes[0].set_ylim(0, max(2.1, axes[0].get_ylim()[1]))
    total = {"original, total": original.total} if latent else {}
    reference_lines(axes[0], {**total, "ln 7": float(np.log(7))})
    if latent:
        curves(axes[1], {"KL": Curve(steps, joined["kl"])}, xlabel=x, ylabel="KL [nats]", title="KL divergence")
        axes[1].set_yscale("symlog", linthresh=1.0)
        axes[1].set_ylim(0, 3.0 * max(original.kl or 1.0, *joined["kl"]))
        reference_lines(axes[1], {} if original.kl is None else {"original": original.kl})
        weight = [1e3 * value for value in joined["kl_factor"]]
        curves(axes[2], {"KL factor": Curve(steps, weight)}, xlabel=x, ylabel="weight [thousandths]", title="KL factor")
        axes[2].set_ylim(0, 1.1 * max(1e3 * original.factor, *weight))
        reference_lines(axes[2], {"original": 1e3 * original.factor})
    legends(axes[0])
    return save_picture(figure, out, f"losses-{run.name}.png", "Losses, KL divergence and its weight")


def _epochs(run: GoalRun, validation: Judged, out: Path) -> Picture:
    figure, axes = panels(1, 2, size=(8.4, 5.2), title="Predictions of actions per epoch")
    ceilings = {"exact, type known": "known", "exact, Bayes": "bayes", "exact, type unknown": "mixture"}
    for ax, key, original in zip(axes, ("top1", "top3"), (TOP1, TOP3)):
        series = {}
        for name, metric in (("validation", f"moa/validation/{key}"), ("training rows", f"moa/train/{key}"),
                             ("validation, without goal", f"moa/validation/free_{key}")):  # fmt: skip
            step, values = column(run.metrics, metric)
            series[name] = Curve([s - 1 for s in step], values)  # a record counts the epochs that are done
        series["original, its training rows"] = Curve(range(len(original)), original)
        curves(ax, series, xlabel="epoch", ylabel=f"{key[:3]}-{key[3:]} [share of rows]")
        lines = {name: getattr(validation.exact(exact), key) for name, exact in ceilings.items()}
        if key == "top1":
            lines["always the same action"] = validation.scores.table.majority
        low = min(*lines.values(), *(min(c.y, default=1.0) for c in series.values()))  # type: ignore[type-var,arg-type]
        ax.set_ylim(low - 0.03, max(*lines.values(), ax.get_ylim()[1]) + 0.01)
        reference_lines(ax, lines)
    legend(figure)
    return save_picture(figure, out, f"epochs-{run.name}.png", "Top-1 and top-3 per epoch, ceilings and floor")


def _confusion(run: GoalRun, validation: Judged, out: Path) -> Picture:
    ours = validation.scores.table
    names = ACTION_NAMES[: len(ours.confusion)]
    figure, (left, right) = panels(1, 2, size=(9.6, 6.6), title="Confusion of actions")
    confusion(left, ours.confusion, names, title=f"ours, {ours.rows:,} validation rows")
    confusion(right, CONFUSION, ACTION_NAMES, title=f"original, its {ROWS:,} training rows")
    return save_picture(figure, out, f"confusion-{run.name}.png", "True (rows) and predicted (columns) actions")


def _recall(run: GoalRun, validation: Judged, out: Path) -> Picture:
    ours = validation.scores.table
    figure, axes = panels(3, 1, size=(11.0, 3.2), title="Per action")
    size = len(ours.confusion)
    for ax, key in zip(axes, ("recall", "precision", "f1")):
        series = {f"ours, {ours.rows:,} validation rows": getattr(ours, key).tolist(),
                  "original, its training rows": getattr(ORIGINAL, key)[:size].tolist()}  # fmt: skip
        bars(ax, ACTION_NAMES[:size], series, ylabel=f"{key.upper() if key == 'f1' else key} [share]")
        ax.set_ylim(0, 1.15)
    legend(figure)
    return save_picture(figure, out, f"per-action-{run.name}.png", "Recall, precision and F1 of every action")


def _reliability(run: GoalRun, validation: Judged, out: Path) -> Picture:
    figure, (left, right) = panels(1, 2, size=(7.6, 5.6), title="Reliability on validation rows")
    for ax, scores, title in ((left, validation.scores, "given the goal"), (right, validation.free, "without goal")):
        reliability(ax, scores.reliability, title=title, name="model")
    legends(left, right)
    return save_picture(figure, out, f"reliability-{run.name}.png", "Reliability of the best guess")


def _transfer(run: GoalRun, section: Section, out: Path) -> Picture | None:
    transfer: dict[str, Any] = section.figures.get("transfer", {})
    if not transfer:
        return None
    names = [name.replace(", ", ",\n").replace("PPO ", "PPO\n") for name in transfer]
    figure, (left, right) = panels(2, 1, size=(1.9 * len(transfer) + 1.5, 4.2), title="From offline data to play")
    given = [v["given"] for v in transfer.values()]
    shares = {"top-1": [g["top1"] for g in given], "top-3": [g["top3"] for g in given]}
    bars(left, names, shares, ylabel="share of rows", title="accuracy")
    left.set_ylim(0, 1.12)
    parts = {
        "the players' own randomness (floor)": [g["floor"] for g in given],
        "cross-entropy of the model": [g["cross_entropy"] for g in given],
    }
    bars(right, names, parts, ylabel="nats", title="what cannot be known, and what the model pays")
    legends(left, right)
    return save_picture(figure, out, f"transfer-{run.name}.png", "Accuracy, and cross-entropy over its floor")


def _codes(run: GoalRun, validation: Judged, out: Path) -> Picture:
    code = validation.predicted.code
    assert code is not None
    place = two_dimensions(code).numpy()
    rows = validation.part.rows
    late = (rows.t >= 2).numpy()  # before that nobody has shown much
    figure, (left, right) = panels(1, 2, size=(7.4, 5.4), title="Goal codes of validation rows from t = 2 on")
    by_type = {k.name: (rows.type == k).numpy() for k in (Kind.NS, Kind.NH, Kind.RAND)}
    by_outcome = {name: (rows.outcome == i).numpy() for i, name in enumerate(OUTCOMES)}
    for ax, groups, title in ((left, by_type, "by type"), (right, by_outcome, "by outcome")):
        series = {n: (place[late & m, 0], place[late & m, 1]) for n, m in groups.items() if (late & m).any()}
        scatter(ax, series, xlabel="first principal component", ylabel="second", title=title)
        legend(ax)
        shown = ax.get_legend()
        for handle in shown.legend_handles if shown else ():
            if isinstance(handle, PathCollection):  # thousands of points are drawn too small and pale for a legend
                handle.set(sizes=[60], alpha=1)
    return save_picture(figure, out, f"codes-{run.name}.png", "Goal codes along their two main directions")


# --- beliefs --------------------------------------------------------------------------------------------------------


def _belief_speed(run: GoalRun, section: Section, out: Path) -> Picture:
    belief: dict[str, Any] = section.figures["belief"]
    names = {"exact": "exact rules", "learned": "learned MOA"}
    figure, (left, right) = panels(1, 2, size=(6.8, 4.6), title="Belief in the true type")
    within = {names[k]: Curve(range(len(v["true_type_by_step"])), v["true_type_by_step"]) for k, v in belief.items()}
    curves(left, within, xlabel="step t", ylabel="probability", title="within an episode")
    reference_lines(left, {"gate at t = 4": 0.9})
    across = {names[k]: Curve(range(len(v["prior_by_episode"])), v["prior_by_episode"]) for k, v in belief.items()}
    curves(right, across, xlabel="episode", ylabel="probability", title="before the first step (discount 0.9)")
    reference_lines(right, {"gate after 10": 0.85})
    legend(figure)
    return save_picture(figure, out, f"belief-{run.name}.png", "Belief in the true type by step and by episode")


def _belief_episode(run: GoalRun, out: Path, episodes: int = 3) -> Picture:
    """What player 1 believes about the others over some episodes in a row, exact and learned."""
    game = game_of(run)
    sources = {"exact rules": exact_source(game)}
    if codebook_or_labels(run.loaded.models, run.loaded.codebook):
        sources["learned MOA"] = learned_source(run.loaded, game)
    figure, axes = panels(game.players - 1, 1, size=(12.0, 2.5), title="What player 1 believes over three episodes",
                          share_x=True)  # fmt: skip
    for i, (name, source) in enumerate(sources.items()):
        _draw_beliefs(axes, game, source, name, i, episodes)
    axes[-1].set_xlabel("step over all episodes (dotted: a new episode; mark: a capture)")
    legend(figure)
    return save_picture(
        figure, out, f"belief-episodes-{run.name}.png", "Belief over steps and episodes, captures marked"
    )


@styled
def _draw_beliefs(axes: list[Any], game: Game, source: BeliefSource, name: str, index: int, episodes: int) -> None:
    """One line per other player; the same games for every source, because play does not depend on beliefs."""
    kinds = [Kind.NS, Kind.NS, Kind.NH, Kind.NS][: game.players]
    kinds += [Kind.NH] * (game.players - len(kinds))
    generator = Rngs(4).torch("shown beliefs")
    players = RulePlayers(game, kinds)
    tracker = source.tracker(game, BeliefConfig())
    belief = tracker.begin(1)
    lines: list[list[tuple[int, float]]] = [[] for _ in axes]
    marks: list[list[tuple[int, float, int]]] = [[] for _ in axes]
    starts, at = [], 0
    for _ in range(episodes):
        starts.append(at)
        start, memory = game.reset(1, generator), players.begin(1, generator)
        for moment in moments(game, players, start, memory, generator):
            got = captures(game, moment.outcome, torch.zeros_like(moment.outcome.hunters))[0].tolist()
            for i, j in enumerate(range(1, game.players)):
                stag = _stag_belief(source, belief["belief"], game, j)
                if bool(moment.view.state.alive[0, j]):
                    lines[i].append((at, stag))
                    if got[j] in (STAG, HARE):
                        marks[i].append((at, stag, got[j]))
            belief = tracker.observe(moment.view, moment.outcome, belief)
            at += 1
        belief = tracker.reset(belief, torch.ones(1, dtype=torch.bool))
        for line in lines:
            line.append((at, float("nan")))  # a gap between episodes
    for i, ax in enumerate(axes):
        xs, ys = zip(*lines[i])
        ax.plot(xs, ys, color=COLOURS[index], linestyle=DASHES[index], label=name, marker="o", markersize=4)
        for x, y, kind in marks[i]:
            mark, meaning = ("*", "captures the stag") if kind == STAG else ("p", "captures a hare")
            ax.plot([x], [y], linestyle="none", marker=mark, markersize=15, color=COLOURS[index], markeredgecolor=INK,
                    label=meaning)  # fmt: skip
        if index == 0:
            for x in starts[1:]:
                ax.axvline(x - 0.5, color="#999999", linestyle=":", linewidth=1.2)
        label(ax, "", "belief in stag", f"about player {i + 2} ({kinds[i + 1].name})")
        ax.set_ylim(-0.14, 1.14)


def _stag_belief(source: BeliefSource, belief: torch.Tensor, game: Game, other: int) -> float:
    """Belief in the stag about `other`: player 1's own, or everybody's where beliefs are not per observer."""
    read = source.read(belief)[0, ..., 0]  # [*P]
    return float(read[other] if read.dim() == 1 else read[0, other - 1])
