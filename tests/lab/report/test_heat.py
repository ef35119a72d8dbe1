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
    assert colours["0.00"] == "#fefefe" and colours["1.00"] == "#212121" and colours[""]


def test_confusion_shows_shares_of_the_true_class() -> None:
    _, [ax] = panels()
    heat.confusion(ax, [[3, 1], [0, 0]], ["a", "b"])
    assert [t.get_text() for t in ax.texts] == ["0.75\n3", "0.25\n1", "", ""]
    with pytest.raises(ValueError, match="3 classes"):
        heat.confusion(ax, [[1]], ["a", "b", "c"])
