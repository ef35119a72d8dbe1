"""Pictures of a score card: shares of all scenarios at a glance, how agents adapt, who gets along with whom."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from marlab.hunt.evaluate.card import Block, ScoreCard
from marlab.hunt.evaluate.scores import SMOOTH
from marlab.lab.report.figures import Curve, curves, moving_mean, reference_lines
from marlab.lab.report.heat import heat_map
from marlab.lab.report.style import legend, panels, save

MOST_EPISODES = 100
TICKS = (1, 3, 10, 30, 100)


def draw_card(card: ScoreCard, run: Path) -> None:
    """Write all pictures that the card has data for into the run's folder of figures, and note them in the card."""
    drawn: dict[str, Path] = {}
    for block in card.blocks:
        word = block.title.lower()
        shares = _shares(card, block, run / "figures" / f"{word}_shares.png")
        drawn[f"{block.title}: share of the way from random (0) to the reference (1)"] = shares
        visitors = [line for line in block.lines if line.scenario.focal == 1]
        if visitors:
            adaptation = _adaptation(card, Block(block.title, visitors), run / "figures" / f"{word}_adaptation.png")
            drawn[f"{block.title}: focal reward by episode, moving mean of {SMOOTH}"] = adaptation
    if len(card.cross) > 1:
        drawn["Cross-play"] = _cross(card, run / "figures" / "cross_play.png")
    card.figures = {caption: file.relative_to(run).as_posix() for caption, file in drawn.items() if file.exists()}


def _shares(card: ScoreCard, block: Block, path: Path) -> Path:
    shown = [[line.share(agent) for agent in card.agents] for line in block.lines]
    values = np.array([[np.nan if share is None else share.value for share in row] for row in shown])
    size = (3.4 + 1.15 * len(card.agents), 1.6 + 0.42 * len(block.lines))
    figure, [ax] = panels(size=size)
    rows = [line.scenario.name for line in block.lines]
    top = max(1.0, float(np.nanmax(values, initial=1.0)))  # who plays better than every reference
    heat_map(
        ax, values, xlabel="", ylabel="", rows=rows, columns=card.agents, limits=(0.0, top),
        bar="share: random 0, reference 1", title=f"{card.game}",
    )  # fmt: skip
    return save(figure, path)


def _adaptation(card: ScoreCard, block: Block, path: Path) -> Path:
    columns = min(4, len(block.lines))
    figure, axes = panels(math.ceil(len(block.lines) / columns), columns, size=(4.2, 3.3))
    for ax, line in zip(axes, block.lines):
        series = {}
        for agent in card.agents:
            rewards = line.scores[agent].by_episode[:MOST_EPISODES]
            series[agent] = Curve(np.arange(1, len(rewards) + 1), moving_mean(rewards, SMOOTH))
        curves(ax, series, xlabel="episode", ylabel="focal reward", title=line.scenario.name)
        ax.set_xscale("log")  # adapting takes a few episodes, runs have hundreds
        longest = max(len(line.scores[agent].by_episode) for agent in card.agents)
        ticks = [tick for tick in TICKS if tick <= longest]
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_ylim(0, 1.08 * max(line.reference.mean, *(float(np.max(c.y)) for c in series.values())))
        reference_lines(ax, {"ref.": line.reference.mean})
    for ax in axes[len(block.lines) :]:
        ax.set_visible(False)
    legend(figure)
    return save(figure, path)


def _cross(card: ScoreCard, path: Path) -> Path:
    values = np.array([[card.cross[a][b].mean for b in card.agents] for a in card.agents])
    wide = 2.6 + 1.1 * len(card.agents)
    figure, [ax] = panels(size=(wide + 1.2, wide))
    heat_map(
        ax, values, xlabel="the others", ylabel="focal", rows=card.agents, columns=card.agents,
        bar="focal reward per episode", title=f"Cross-play, {card.game}", square=True,
    )  # fmt: skip
    return save(figure, path)
