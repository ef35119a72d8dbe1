"""Every drawing helper with realistic data: a gallery, and what each figure must show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from marlab.lab.report import figures
from marlab.lab.report.figures import Curve, moving_mean, reliability_bins
from marlab.lab.report.style import overhang, panels, save, settle
from tests.lab.report.drawings import (
    GALLERY,
    draw_bars,
)


@pytest.mark.parametrize("name", GALLERY)
def test_every_helper_makes_a_complete_reproducible_figure(name: str, tmp_path: Path) -> None:
    if name == "missing":  # there is nothing to draw: no figure is better than an empty one
        assert not save(GALLERY[name](), tmp_path / "a.png").exists()
        return
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


def test_curve_band_is_students_interval() -> None:
    _, [ax] = panels()
    figures.curves(
        ax, {"a": Curve([0, 1], [[1.0, 4.0], [3.0, 4.0], [1.0, 4.0], [3.0, 4.0]])}, xlabel="step", ylabel="y"
    )
    edges = ax.collections[0].get_paths()[0].vertices
    assert edges[:, 1].min() == pytest.approx(2 - 3.182446 * (4 / 3) ** 0.5 / 2, rel=1e-4)  # t(3) * s / sqrt(4)
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
