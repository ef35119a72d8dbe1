"""The figure of a comparison: bands over trainings, one row per group, the same look for both."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from marlab.lab.compare.compare import compare_groups
from marlab.lab.compare.figure import _forest, _lines, draw
from marlab.lab.compare.groups import open_groups
from marlab.lab.report.style import panels
from tests.lab.compare.cases import make_training, two_groups


def test_curves_of_a_group_share_their_steps(tmp_path: Path) -> None:
    runs = two_groups(tmp_path, [1.0, 2.0], [3.0])
    runs.append(make_training(tmp_path, "a2", 5.0, 2, curve=[4.0, 5.0, 6.0]))  # went on for longer
    groups = open_groups(runs, tmp_path)
    lines = _lines(compare_groups(groups), groups)
    assert list(lines) == ["rate=0.1", "rate=0.3"] and list(lines["rate=0.1"].x) == [1, 2, 3]  # type: ignore[call-overload]
    values = np.asarray(lines["rate=0.1"].y)
    assert values[2].tolist() == [4.0, 5.0, 6.0] and values[0, :2].tolist() == [0.0, 1.0] and np.isnan(values[0, 2])
    out = draw(compare_groups(groups), groups, tmp_path / "out.png")
    assert out.stat().st_size > 20_000


def test_a_row_shows_its_mean_interval_trainings_and_verdict(tmp_path: Path) -> None:
    found = compare_groups(open_groups(two_groups(tmp_path, [1.0, 2.0, 3.0], [2.1, 3.0, 3.9]), tmp_path))
    _, [ax] = panels()
    _forest(ax, found, {"rate=0.1": 0})
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["rate=0.1\nthe reference", "rate=0.3\nbetter"]
    assert sorted(np.asarray(ax.collections[0].get_offsets())[:, 0].tolist()) == [1.0, 2.0, 3.0]
    assert ax.get_xlabel() == "score [points]"


def test_runs_without_curves_are_drawn_too(tmp_path: Path) -> None:
    groups = open_groups(
        [make_training(tmp_path, n, r, judged=None, rate=r) for n, r in (("x", 1), ("y", 2))], tmp_path
    )
    assert draw(compare_groups(groups), groups, tmp_path / "out.png").exists()
