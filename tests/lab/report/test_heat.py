"""Heat maps: readable numbers, one scale, shares of the true class."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.lab.report import heat
from marlab.lab.report.style import panels


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
