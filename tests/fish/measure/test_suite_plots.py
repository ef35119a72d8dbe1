"""The figures of the suite are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from marlab.fish.measure.suite_plots import plot_carries, plot_escape_angles, plot_field


def test_figures_are_drawn(tmp_path: Path) -> None:
    line = {"value": 0.5, "low": 0.4, "high": 0.6}
    row = {"policy": line, "slip": line, "policy minus best script": line}
    cells = ["fish 10", "fish 32", "predator speed 1", "predator speed 2", "vision 1", "vision 2", "delay 0", "delay 4"]
    files = [
        plot_carries(dict.fromkeys(cells, row), tmp_path / "a.png"),
        plot_escape_angles({"policy": [1, 2, 3], "slip": [0, 0, 0]}, 33.6, tmp_path / "b.png"),
        plot_field(np.zeros((4, 5, 5), np.int8), np.ones((4, 5, 5), np.float16), tmp_path / "c.png"),
    ]
    assert all(file.stat().st_size > 5000 for file in files)
