"""One small figure of every kind, for the tests of figures and style."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from marlab.lab.report import figures, heat
from marlab.lab.report.figures import Curve, reliability_bins
from marlab.lab.report.style import legend, panels
from marlab.lab.stats import Measured, share_interval

ACTIONS = ("up", "down", "left", "right", "stay", "stag", "hare")


def seeded_curves(seed: int, final: float, points: int = 60) -> np.ndarray:
    """[5 seeds, points] of a learning curve that rises from 0.4 to about `final`."""
    rng = np.random.default_rng(seed)
    rise = 0.4 + (final - 0.4) * (1 - np.exp(-np.linspace(0, 5, points)))
    return np.clip(rise + 0.02 * rng.standard_normal((5, 1)) + 0.03 * rng.standard_normal((5, points)), 0, 1)


def draw_bars() -> Figure:
    figure, [ax] = panels(size=(8.6, 4.6))
    values = {
        "with belief": [Measured(2.78, 2.70, 2.86), Measured(3.61, 3.40, 3.82), Measured(-0.40, -0.62, -0.18)],
        "without belief": [Measured(1.94, 1.80, 2.08), Measured(2.20, 2.05, 2.35), Measured(0.15, -0.05, 0.35)],
        "random": [0.68, 0.52, None],
    }
    figures.bars(
        ax, ["msh_4x4", "msh_8x8", "snow drift"], values, ylabel="return per player [points]", title="Held-out worlds"
    )
    figures.reference_lines(ax, {"best possible": 5.0})
    legend(figure)
    return figure


def draw_confusion() -> Figure:
    figure, [ax] = panels(size=(8.0, 6.2))
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 60, (7, 7)) + np.diag([1294, 1300, 1280, 1294, 3457, 516, 859])
    counts[5] = 0
    heat.confusion(ax, counts, ACTIONS, title="What the co-player did and what was expected")
    return figure


def draw_curves() -> Figure:
    figure, [ax] = panels(size=(7.4, 4.6))
    steps = np.linspace(0, 3e6, 60)
    lines = {
        "shared policy": Curve(steps, seeded_curves(0, 0.97)),
        "no curriculum": Curve(steps, seeded_curves(1, 0.88)),
        "no hard starts": Curve(steps, seeded_curves(2, 0.80)),
    }
    figures.curves(
        ax, lines, xlabel="agent steps", ylabel="survival [share]", title="Survival while training", smooth=5
    )
    figures.reference_lines(ax, {"best scripted": 0.985, "flee": 0.962, "hold": 0.812, "random": 0.743})
    legend(figure)
    return figure


def draw_heat_map() -> Figure:
    figure, [ax] = panels(size=(7.4, 5.0))
    rng = np.random.default_rng(5)
    share = rng.beta(2, 5, (6, 8))
    share[2, 3] = share[5, 0] = np.nan
    figures_speed = [f"{v:.1f}" for v in np.arange(0.4, 3.6, 0.4)]
    heat.heat_map(
        ax, share, xlabel="predator speed [units/step]", ylabel="heading [degrees]", bar="step-one deaths [share]",
        rows=[f"{a}" for a in range(0, 360, 60)], columns=figures_speed, title="Where the first step kills",
    )  # fmt: skip
    return figure


def draw_histograms() -> Figure:
    figure, axes = panels(1, 2, size=(5.8, 4.2))
    rng = np.random.default_rng(8)
    deaths = {"15 fish": rng.gamma(2, 60, 400), "25 fish": rng.gamma(3, 70, 400)}
    edges = list(np.arange(0, 501, 25))
    figures.histogram(axes[0], deaths, bins=edges, xlabel="step of death", title="Laid over", share=True)
    figures.histogram(axes[1], deaths, bins=edges, xlabel="step of death", ylabel="fish", title="Stacked", stacked=True)
    legend(figure)
    return figure


def draw_large_map() -> Figure:
    figure, [ax] = panels(size=(6.0, 5.0))
    y, x = np.mgrid[-1:1:60j, -1:1:60j]
    heat.heat_map(
        ax, np.sin(4 * x) * np.cos(3 * y), xlabel="x [tank radii]", ylabel="y [tank radii]", centre=0.0,
        extent=(-1, 1, -1, 1), square=True, bar="value difference [points]", title="Value over the tank",
    )  # fmt: skip
    return figure


def draw_many_bars() -> Figure:
    figure, [ax] = panels(size=(8.6, 4.2))
    names = ["random", "hold", "brake", "circle", "flee", "south", "side-step", "oracle"]
    shares = [share_interval(h, 200) for h in (149, 162, 158, 170, 192, 151, 195, 199)]
    figures.bars(ax, names, {"survival": [Measured(*s) for s in shares]}, ylabel="survival [share]", digits=3)
    return figure


def draw_missing() -> Figure:
    figure, axes = panels(2, 2)
    figures.curves(axes[0], {"gone": Curve([0, 1], [np.nan, np.nan])}, xlabel="step", ylabel="loss [nats]")
    figures.histogram(axes[1], {"gone": []}, xlabel="step")
    figures.scatter(axes[2], {}, xlabel="x", ylabel="y")
    figures.reliability(axes[3], reliability_bins([], []))
    return figure


def draw_panels() -> Figure:
    figure, axes = panels(1, 2, size=(5.6, 4.2), title="Two runs, five seeds each", share_y=True)
    steps = np.arange(60)
    for ax, name, final in zip(axes, ("15 fish", "25 fish"), (0.95, 0.9)):
        lines = {"PPO": Curve(steps, seeded_curves(3, final)), "imitation": Curve(steps, seeded_curves(4, final - 0.2))}
        figures.curves(ax, lines, xlabel="iteration", ylabel="survival [share]", title=name)
    axes[1].set_ylabel("")
    legend(figure)
    return figure


def draw_polar() -> Figure:
    figure, [ax] = panels(size=(6.0, 5.4), polar=True)
    rng = np.random.default_rng(11)
    shapes = {"slow, < 0.8": (1.6, 0.5, 60), "medium": (1.9, 0.7, 90), "fast, > 1.6": (4, 1, 40)}
    speeds = {name: rng.normal(*shape) for name, shape in shapes.items()}
    figures.polar_histogram(ax, speeds, title="Step-one deaths", unit="fish")
    legend(ax)
    return figure


def draw_reliability() -> Figure:
    figure, [ax] = panels(size=(6.0, 6.0))
    rng = np.random.default_rng(10)
    sure = rng.beta(3, 2, 4000)
    data = reliability_bins(sure, rng.random(4000) < sure**1.4)
    figures.reliability(ax, data, title="Is it as sure as it is right?", name="other's action")
    legend(figure, columns=1)
    return figure


def draw_scatter() -> Figure:
    figure, [ax] = panels(size=(6.4, 5.2))
    rng = np.random.default_rng(9)
    x = rng.random((2, 80))
    series = {"value net": (x[0], x[0] + 0.05 * rng.standard_normal(80)), "search": (x[1], 0.7 * x[1] + 0.1)}
    figures.scatter(ax, series, xlabel="return [points]", ylabel="predicted [points]", identity="exact", title="Value")
    legend(ax)
    return figure


GALLERY: dict[str, Callable[[], Figure]] = {
    name.removeprefix("draw_"): value for name, value in sorted(globals().items()) if name.startswith("draw_")
}
