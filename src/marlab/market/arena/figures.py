"""Two pictures of a tournament: who is ahead and by how much, and what was made of what was possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from marlab.lab.report import figures, style
from marlab.lab.stats import Measured, mean_interval, written
from marlab.market.arena.plan import label
from marlab.market.arena.report import Result, ranked, signed
from marlab.market.arena.stats import closed, means_by_config
from marlab.market.arena.world import money_parts
from marlab.market.simulator.seating import POSITIONS
from marlab.market.simulator.settlement import MONEY

_READABLE: dict[str, Any] = {"path_effects": [withStroke(linewidth=3, foreground="white")]}
"""Numbers that stand on something."""

_LOWEST = -1.0
LONGEST = 16
"""Characters of a line beside a bar."""


def _panels(agents: int) -> tuple[Figure, list[Axes]]:
    """Two panels, side by side for a few agents, above each other for many."""
    size = (max(7.4, 0.95 * agents), max(4.2, 1.6 + 0.42 * agents))
    return style.panels(2, 1, size=size) if agents > 6 else style.panels(1, 2, size=size)


def draw(result: Result, scores: Path, parts: Path) -> None:
    """`scores`: differences to the baseline, and scores by level; `parts`: money, and shares of the bound."""
    names = ranked(result)
    figure, axes = _panels(len(names))
    _differences(axes[0], result)
    groups = [_short(name) for name in names]
    figures.bars(
        axes[1], groups, _by_level(result, names), ylabel="score", title="Scores by level (opening balance = 1)"
    )
    _turn(axes[1], groups)
    style.legend(axes[1])
    style.save(figure, scores)
    figure, axes = _panels(len(names))
    _money(axes[0], result, names)
    shares = {
        place: [_closed(result, name, place) for name in names]
        for place in POSITIONS
        if any(seat["position"] == place for seat in result.seats)
    }
    figures.bars(axes[1], groups, shares, ylabel="share reached", title="Reached of (captured bound - no trade)")
    if axes[1].get_ylim()[0] < _LOWEST:  # who goes bankrupt would dwarf all others
        axes[1].set_ylim(bottom=_LOWEST)
        axes[1].set_title(f"{axes[1].get_title(loc='left')} (cut at {written(_LOWEST, 0)})", loc="left")
    for ax in axes:
        _turn(ax, groups)
        style.legend(ax)
    style.save(figure, parts)


@style.styled
def _differences(ax: Axes, result: Result) -> None:
    """One line per agent: mean and interval, and a dot for every config."""
    comparisons = sorted(result.comparisons(), key=lambda c: c.mean)
    for row, c in enumerate(comparisons):
        few = len(c.differences) < 8
        interval = c.student if few else c.bootstrap
        if interval is not None and len(c.differences) > 2:  # of two it would hide everything else
            ax.hlines(row, *interval, color=style.INK, linewidth=2.2)
        spread = row + 0.16 * np.linspace(-1, 1, len(c.differences)) if len(c.differences) > 1 else [row]
        ax.plot(c.differences, spread, "o", color=style.colour(0), alpha=0.45, markersize=5, markeredgewidth=0)
        ax.plot([c.mean], [row], "D", color=style.colour(1), markersize=9, markeredgecolor="white")
        text = signed(c.mean)
        ax.annotate(text, (c.mean, row), (0, 11), textcoords="offset points", ha="center", fontsize=11, **_READABLE)
    ax.axvline(0.0, color=style.GREY, linewidth=1.2)
    ax.set_yticks(range(len(comparisons)), [_short(c.agent) for c in comparisons])
    ax.set_ylim(-0.7, len(comparisons) - 0.3)
    ax.grid(visible=False, axis="y")
    n = len(result.configs)
    kind = "" if n < 3 else ", Student's 95 %" if n < 8 else ", bootstrap 95 %"
    figures.label(
        ax,
        f"difference of scores ({n} config{'' if n == 1 else 's'}: dots{kind})",
        "",
        f"Minus {_short(result.config.against)}",
    )


def _by_level(result: Result, names: list[str]) -> dict[str, list[Measured | None]]:
    places = {place: [seat for seat in result.seats if seat["position"] == place] for place in POSITIONS}
    return {
        place: [_measured(list(means_by_config(seats, name).values())) for name in names]
        for place, seats in places.items()
        if seats
    }


def _measured(values: list[float]) -> Measured | None:
    if not values:
        return None
    mean, low, high = (float(v) for v in mean_interval(values))
    return Measured(mean, low, high) if len(values) > 2 else Measured(mean)


def _closed(result: Result, name: str, place: str) -> float | None:
    seats = [s for s in result.seats if s["agent"] == name and s["position"] == place]
    share = closed(seats, "captured")
    return share if np.isfinite(share) else None


@style.styled
def _money(ax: Axes, result: Result, names: list[str]) -> None:
    """What was earned, upwards, and paid, downwards; the mark is the profit."""
    up, down = np.zeros(len(names)), np.zeros(len(names))
    places = np.arange(len(names))
    parts = [money_parts([s for s in result.seats if s["agent"] == name]) for name in names]
    for i, key in enumerate(MONEY):
        values = np.array([part[key] for part in parts])
        hatch = style.HATCHES[i % len(style.HATCHES)]
        look: dict[str, Any] = {"color": style.colour(i), "edgecolor": "white", "hatch": hatch, "label": key}
        if key == "revenue":
            ax.bar(places, values, 0.7, bottom=up, **look)
            up += values
        else:
            ax.bar(places, -values, 0.7, bottom=down, **look)
            down -= values
    ax.plot(places, up + down, "D", color="white", markeredgecolor=style.INK, markersize=9, label="profit")
    for place, profit in zip(places, up + down):
        ax.annotate(written(float(profit), 2), (float(place), profit), (11, 0), textcoords="offset points", va="center",
                    fontsize=11, **_READABLE)  # fmt: skip
    ax.axhline(0.0, color=style.GREY, linewidth=1.0)
    ax.set_xlim(-0.6, len(names) - 0.2)
    ax.set_xticks(places, [_short(name) for name in names])
    ax.grid(visible=False, axis="x")
    figures.label(ax, "", "share of opening balance", "Where the score comes from")


@style.styled
def _turn(ax: Axes, groups: list[str]) -> None:
    """Long or many names under bars need a slope."""
    if max(map(len, groups)) * len(groups) > 30:
        ax.set_xticks(range(len(groups)), groups, rotation=35, ha="right", rotation_mode="anchor")


def _short(name: str) -> str:
    """A name that fits beside a bar; settings stand on a line of their own."""
    kind, _, settings = label(name).partition("(")
    kind = kind.removesuffix("Agent").removesuffix("Std") or kind
    lines = [kind, settings.removesuffix(")")] if settings else [kind]
    return "\n".join(line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in lines)
