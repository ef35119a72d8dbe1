"""Heat maps: readable numbers, one scale, shares of the true class."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.lab.report import heat
from marlab.lab.report.style import panels, settle


def test_heat_map_numbers_flip_with_the_background() -> None:
    _, [ax] = panels()
    heat.heat_map(ax, [[0.0, 1.0], [np.nan, 0.5]], xlabel="x", ylabel="y")
    colours = {t.get_text(): t.get_color() for t in ax.texts}
    assert colours["0.00"] == "#fefefe" and colours["1.00"] == "#212121" and colours[""]


def test_confusion_shows_shares_of_the_true_class() -> None:
    _, [ax] = panels()
    heat.confusion(ax, [[3, 1], [0, 0]], ["a", "b"])
    assert [t.get_text() for t in ax.texts] == ["0.75\n3", "0.25\n1", "", ""]
    with pytest.raises(ValueError, match="3 classes"):
        heat.confusion(ax, [[1]], ["a", "b", "c"])


def test_the_label_of_a_flat_colour_bar_is_complete() -> None:
    figure, [ax] = panels(size=(9.0, 2.2))
    heat.heat_map(ax, [[0.0, 1.0]] * 2, xlabel="", ylabel="", bar="share: random 0, reference 1")
    settle(figure)
    told = figure.axes[-1].yaxis.label
    box = told.get_window_extent()

    assert (
        told.get_text().replace("\n", " ") == "share: random 0, reference 1" and 0 < box.y0 < box.y1 < 2.2 * figure.dpi
    )
