"""Figures of `marlab fish suite`: how far a policy carries, at which angles fish flee, and what they do where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray

from marlab.fish.measure.pathfile import FIELD_REACH, HEADINGS
from marlab.fish.sea.constants import ACTION_COUNT, HOLD, KILL_DISTANCE
from marlab.lab.report.figures import label
from marlab.lab.report.style import GREY, INK, colour, legend, panels, save, styled

AXES = {"fish": "fish per arena", "predator speed": "predator speed [factor]", "vision": "vision [factor]",
        "delay": "delay of actions [steps]"}  # fmt: skip
ACTIONS = ("forward", "left", "right", "brake", "hold")


@styled
def plot_carries(told: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path) -> Path:
    """Survival along each axis with its interval, for the policy and the scripts."""
    figure, axes = panels(2, 2, size=(10.0, 7.0))
    for ax, (axis, title) in zip(axes, AXES.items()):
        rows = {float(cell[len(axis) :]): row for cell, row in told.items() if cell.startswith(f"{axis} ")}
        places = sorted(rows)
        for index, name in enumerate(n for n in rows[places[0]] if n != "policy minus best script"):
            lines = [rows[place][name] for place in places]
            mean = [line["value"] for line in lines]
            ax.plot(
                places, mean, color=colour(index), label=name, linewidth=2.2 if name == "policy" else 1.1, marker="o"
            )
            low, high = ([line[side] for line in lines] for side in ("low", "high"))
            ax.fill_between(places, low, high, color=colour(index), alpha=0.15, linewidth=0)
        if axis == "fish":
            ax.set_xscale("log")
            ax.minorticks_off()
        ax.set_xticks(places, [f"{place:g}" for place in places])
        ax.set_ylim(0, 1)
        label(ax, title, "survival [share of fish]")
    legend(axes[0])
    return save(figure, path)


@styled
def plot_escape_angles(counts: Mapping[str, Sequence[int]], best: float | None, path: Path) -> Path:
    """Share of escape angles by player, beside the best angle against a predator that does not turn."""
    figure, (ax,) = panels(size=(8.0, 4.2))
    for index, (name, values) in enumerate(counts.items()):
        number = np.asarray(values, dtype=float)
        edges = np.linspace(0, 180, len(number) + 1)
        width = 2.4 if name == "policy" else 1.1
        ax.stairs(number / max(1.0, number.sum()), edges, color=colour(index), label=name, linewidth=width)
    if best is not None:
        ax.axvline(best, color=INK, linestyle="--", linewidth=1.0)
        ax.annotate(f"best against a straight attack: {best:.0f}°", (best, ax.get_ylim()[1]), (6, -12),
                    textcoords="offset points", color=INK)  # fmt: skip
    label(ax, "angle between the headings of fish and predator [degrees]", "share of looks", "How fish flee")
    legend(ax)
    return save(figure, path)


@styled
def plot_field(actions: NDArray[np.int8], chance: NDArray[np.float16], path: Path) -> Path:
    """What a lone fish does at every place around a predator that swims to the right, by the fish's own heading."""
    figure, axes = panels(2, 2, size=(9.0, 9.0))
    shades = [*(colour(index) for index in range(HOLD)), GREY]  # two blues would look alike where they are pale
    colours = ListedColormap(shades)
    reach = (-FIELD_REACH, FIELD_REACH, -FIELD_REACH, FIELD_REACH)
    for ax, heading, action, sure in zip(axes, HEADINGS, actions, chance):
        ax.imshow(
            action, origin="lower", extent=reach, cmap=colours, vmin=-0.5, vmax=ACTION_COUNT - 0.5,
            alpha=np.clip(np.asarray(sure, dtype=float), 0.25, 1.0), interpolation="nearest",
        )  # fmt: skip
        around = np.linspace(0, 2 * np.pi, 60)
        ax.plot(KILL_DISTANCE * np.cos(around), KILL_DISTANCE * np.sin(around), color=INK, linewidth=1.0)
        ax.annotate("", (1.4, 0), (0, 0), arrowprops={"arrowstyle": "->", "color": INK})
        label(ax, "m", "m", f"fish swims {heading}")
    for shade, name in zip(shades, ACTIONS):
        axes[0].plot([], [], "s", color=shade, label=name)
    legend(axes[0])
    return save(figure, path)
