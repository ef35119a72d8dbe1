"""Every drawing helper with realistic data: a gallery, and what each figure must show."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from marlab.lab.measured import Measured
from marlab.lab.report import figures, heat
from marlab.lab.report.figures import Curve, moving_mean, reliability_bins
from marlab.lab.report.style import legend, overhang, panels, save, settle
from marlab.lab.stats import share_interval

ACTIONS = ("up", "down", "left", "right", "stay", "stag", "hare")


def seeded_curves(seed: int, final: float, points: int = 60) -> np.ndarray:
    """[5 seeds, points] of a learning curve that rises from 0.4 to about `final`."""
    rng = np.random.default_rng(seed)
    rise = 0.4 + (final - 0.4) * (1 - np.exp(-np.linspace(0, 5, points)))
    return np.clip(rise + 0.02 * rng.standard_normal((5, 1)) + 0.03 * rng.standard_normal((5, points)), 0, 1)


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


def draw_panels() -> Figure:
    figure, axes = panels(1, 2, size=(5.6, 4.2), title="Two runs, five seeds each", share_y=True)
    steps = np.arange(60)
    for ax, name, final in zip(axes, ("15 fish", "25 fish"), (0.95, 0.9)):
        lines = {"PPO": Curve(steps, seeded_curves(3, final)), "imitation": Curve(steps, seeded_curves(4, final - 0.2))}
        figures.curves(ax, lines, xlabel="iteration", ylabel="survival [share]", title=name)
    axes[1].set_ylabel("")
    legend(figure)
    return figure


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


def draw_many_bars() -> Figure:
    figure, [ax] = panels(size=(8.6, 4.2))
    names = ["random", "hold", "brake", "circle", "flee", "south", "side-step", "oracle"]
    shares = [share_interval(h, 200) for h in (149, 162, 158, 170, 192, 151, 195, 199)]
    figures.bars(ax, names, {"survival": [Measured(*s) for s in shares]}, ylabel="survival [share]", digits=3)
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


def draw_heat_maps() -> Figure:
    rng = np.random.default_rng(6)
    truth = rng.random((5, 5)).round(2)
    predicted = np.clip(truth + 0.15 * rng.standard_normal((5, 5)), 0, 1)
    return heat.heat_maps(
        {"truth": truth, "predicted": predicted}, error=("predicted − truth", predicted - truth),
        xlabel="column", ylabel="row", square=True, bar="occupied [probability]", error_bar="error [probability]",
    )  # fmt: skip


def draw_large_map() -> Figure:
    figure, [ax] = panels(size=(6.0, 5.0))
    y, x = np.mgrid[-1:1:60j, -1:1:60j]
    heat.heat_map(
        ax, np.sin(4 * x) * np.cos(3 * y), xlabel="x [tank radii]", ylabel="y [tank radii]", centre=0.0,
        extent=(-1, 1, -1, 1), square=True, bar="value difference [points]", title="Value over the tank",
    )  # fmt: skip
    return figure


def draw_confusion() -> Figure:
    figure, [ax] = panels(size=(8.0, 6.2))
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 60, (7, 7)) + np.diag([1294, 1300, 1280, 1294, 3457, 516, 859])
    counts[5] = 0
    heat.confusion(ax, counts, ACTIONS, title="What the co-player did and what was expected")
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


def draw_scatter() -> Figure:
    figure, [ax] = panels(size=(6.4, 5.2))
    rng = np.random.default_rng(9)
    x = rng.random((2, 80))
    series = {"value net": (x[0], x[0] + 0.05 * rng.standard_normal(80)), "search": (x[1], 0.7 * x[1] + 0.1)}
    figures.scatter(ax, series, xlabel="return [points]", ylabel="predicted [points]", identity="exact", title="Value")
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


def draw_polar() -> Figure:
    figure, [ax] = panels(size=(6.0, 5.4), polar=True)
    rng = np.random.default_rng(11)
    shapes = {"slow, < 0.8": (1.6, 0.5, 60), "medium": (1.9, 0.7, 90), "fast, > 1.6": (4, 1, 40)}
    speeds = {name: rng.normal(*shape) for name, shape in shapes.items()}
    figures.polar_histogram(ax, speeds, title="Step-one deaths", unit="fish")
    legend(ax)
    return figure


def draw_missing() -> Figure:
    figure, axes = panels(2, 2)
    figures.curves(axes[0], {"gone": Curve([0, 1], [np.nan, np.nan])}, xlabel="step", ylabel="loss [nats]")
    figures.histogram(axes[1], {"gone": []}, xlabel="step")
    figures.scatter(axes[2], {}, xlabel="x", ylabel="y")
    figures.reliability(axes[3], reliability_bins([], []))
    return figure


GALLERY: dict[str, Callable[[], Figure]] = {
    name.removeprefix("draw_"): value for name, value in sorted(globals().items()) if name.startswith("draw_")
}


@pytest.mark.parametrize("name", GALLERY)
def test_every_helper_makes_a_complete_reproducible_figure(name: str, tmp_path: Path) -> None:
    figure = GALLERY[name]()
    settle(figure)
    assert overhang(figure) < 0.01, "something is cut off"
    width, height = figure.get_size_inches()
    first = save(GALLERY[name](), tmp_path / "a.png")
    second = save(GALLERY[name](), tmp_path / "b.png")
    with Image.open(first) as image:
        assert image.size == (round(width * 150), round(height * 150))
    assert first.read_bytes() == second.read_bytes()
    save(figure, tmp_path / "c.png")
    assert not figure.axes  # emptied: nothing keeps the data alive


def test_drawing_changes_no_global_state(tmp_path: Path) -> None:
    import sys

    code_before = dict(matplotlib.rcParams)
    plot_modules = "matplotlib.pyplot" in sys.modules
    plain = save(draw_bars(), tmp_path / "plain.png").read_bytes()
    assert dict(matplotlib.rcParams) == code_before
    assert ("matplotlib.pyplot" in sys.modules) == plot_modules
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False, "savefig.facecolor": "red"}):
        assert save(draw_bars(), tmp_path / "odd.png").read_bytes() == plain  # a matplotlibrc cannot change a figure


def test_a_failed_save_leaves_the_old_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(draw_scatter(), tmp_path / "a.png")
    old = path.read_bytes()

    def full_disk(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full_disk)
    with pytest.raises(OSError, match="No space"):
        save(draw_bars(), path)
    assert path.read_bytes() == old and list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match="PNG"):
        save(draw_bars(), tmp_path / "a.jpg")


def labels_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_legend_tells_seeds_and_smoothing() -> None:
    assert labels_of(draw_curves())[0] == "shared policy (5 seeds, 95 % band, moving mean of 5)"
    assert labels_of(draw_panels()) == ["PPO (5 seeds, 95 % band)", "imitation (5 seeds, 95 % band)"]  # once, not twice


def test_curve_band_is_students_interval() -> None:
    _, [ax] = panels()
    figures.curves(
        ax, {"a": Curve([0, 1], [[1.0, 4.0], [3.0, 4.0], [1.0, 4.0], [3.0, 4.0]])}, xlabel="step", ylabel="y"
    )
    edges = ax.collections[0].get_paths()[0].vertices
    assert edges[:, 1].min() == pytest.approx(2 - 3.1824 * (4 / 3) ** 0.5 / 2, rel=1e-4)  # t(3) * s / sqrt(4)
    assert ax.lines[0].get_ydata() == pytest.approx([2.0, 4.0])


def test_few_repetitions_show_their_range() -> None:
    _, [ax] = panels()
    figures.curves(ax, {"a": Curve([0, 1], [[1.0, 4.0], [3.0, 5.0]])}, xlabel="step", ylabel="y")
    edges = ax.collections[0].get_paths()[0].vertices
    assert (edges[:, 1].min(), edges[:, 1].max()) == (1.0, 5.0)
    assert ax.get_legend_handles_labels()[1] == ["a (2 seeds, range)"]


def test_curves_refuse_lengths_that_do_not_match() -> None:
    _, [ax] = panels()
    with pytest.raises(ValueError, match="'a': x has 3 points"):
        figures.curves(ax, {"a": Curve([0, 1, 2], [1.0, 2.0])}, xlabel="step", ylabel="y")


def test_moving_mean_by_hand() -> None:
    assert moving_mean([1, 2, 3, 10], 3) == pytest.approx([1.5, 2, 5, 6.5])
    assert moving_mean([1, np.nan, 3], 3) == pytest.approx([1, 2, 3])
    assert moving_mean([5.0, 7.0], 1) == pytest.approx([5, 7])


def test_bars_write_their_values_and_say_where_there_is_none() -> None:
    [ax] = draw_bars().axes
    texts = [t.get_text() for t in ax.texts]
    assert {"2.78", "−0.40", "0.68", "no data"} <= set(texts)
    with pytest.raises(ValueError, match="2 values for 1 groups"):
        figures.bars(ax, ["one"], {"a": [1, 2]}, ylabel="y")


def test_heat_map_numbers_flip_with_the_background() -> None:
    _, [ax] = panels()
    heat.heat_map(ax, [[0.0, 1.0], [np.nan, 0.5]], xlabel="x", ylabel="y")
    colours = {t.get_text(): t.get_color() for t in ax.texts}
    assert colours["0.00"] == "white" and colours["1.00"] == "#222222" and colours[""]


def test_heat_maps_share_one_scale_and_errors_are_symmetric() -> None:
    figure = heat.heat_maps(
        {"a": [[0.0, 1.0]], "b": [[2.0, 3.0]]}, error=("b − a", [[-1.0, 2.0]]), xlabel="x", ylabel="y", bar="points"
    )
    images = [ax.images[0] for ax in figure.axes if ax.images]
    assert [image.get_clim() for image in images[:3]] == [(0.0, 3.0), (0.0, 3.0), (-2.0, 2.0)]


def test_confusion_shows_shares_of_the_true_class() -> None:
    _, [ax] = panels()
    heat.confusion(ax, [[3, 1], [0, 0]], ["a", "b"])
    assert [t.get_text() for t in ax.texts] == ["0.75\n3", "0.25\n1", "", ""]
    with pytest.raises(ValueError, match="3 classes"):
        heat.confusion(ax, [[1]], ["a", "b", "c"])


def test_reference_names_stay_apart_and_in_order() -> None:
    _, [ax] = panels()
    figures.curves(ax, {"a": Curve([0, 1], [0, 1])}, xlabel="step", ylabel="y")
    figures.reference_lines(ax, {"c": 0.52, "a": 0.50, "b": 0.51, "far": 0.9})
    places = {t.get_text().split()[0]: t.get_position()[1] for t in ax.texts}
    ordered = [places[k] for k in ("a", "b", "c", "far")]
    assert all(second - first > 0.06 for first, second in pairwise(ordered))


def test_histogram_counts_and_shares() -> None:
    _, [ax] = panels()
    figures.histogram(ax, {"a": [0.1, 0.2, 0.9, np.nan]}, bins=[0, 0.5, 1], xlabel="x", share=True)
    assert ax.patches[0].get_data().values == pytest.approx([2 / 3, 1 / 3])
    assert ax.get_ylabel() == "share"


def test_polar_bins_start_at_east_and_turn_counter_clockwise() -> None:
    _, [ax] = panels(polar=True)
    figures.polar_histogram(ax, {"a": [0.1, np.pi / 2 + 0.1, -0.1]}, bins=4)
    assert [bar.get_height() for bar in ax.patches] == [1, 1, 0, 1]  # north-east quarter, north-west, …, south-east


def test_reliability_by_hand() -> None:
    data = reliability_bins([0.1, 0.3, 0.9, 1.0], [0, 1, 1, 1], bins=2)
    assert data.count.tolist() == [2, 2]
    assert data.accuracy == pytest.approx([0.5, 1.0]) and data.confidence == pytest.approx([0.2, 0.95])
    assert data.error == pytest.approx((0.3 * 2 + 0.05 * 2) / 4)
    with pytest.raises(ValueError, match="between 0 and 1"):
        reliability_bins([1.2], [1])
    with pytest.raises(ValueError, match="one length"):
        reliability_bins([0.2], [1, 0])
