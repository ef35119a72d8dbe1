"""One style for all figures: no global state, files whole or untouched, names that stay apart."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from marlab.lab.report import figures, style
from marlab.lab.report.figures import Curve
from marlab.lab.report.style import panels, save, themed
from tests.lab.report.drawings import (
    draw_bars,
    draw_curves,
    draw_panels,
    draw_scatter,
)


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
    assert path.read_bytes() == old
    assert sorted(tmp_path.iterdir()) == [path, path.with_suffix(".svg")]
    with pytest.raises(ValueError, match="PNG"):
        save(draw_bars(), tmp_path / "a.jpg")


def labels_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_legend_tells_seeds_and_smoothing() -> None:
    assert labels_of(draw_curves())[0] == "shared policy (5 seeds, 95 % band, moving mean of 5)"
    assert labels_of(draw_panels()) == ["PPO (5 seeds, 95 % band)", "imitation (5 seeds, 95 % band)"]  # once, not twice


def test_reference_names_stay_apart_and_in_order() -> None:
    _, [ax] = panels()
    figures.curves(ax, {"a": Curve([0, 1], [0, 1])}, xlabel="step", ylabel="y")
    figures.reference_lines(ax, {"c": 0.52, "a": 0.50, "b": 0.51, "far": 0.9})
    places = {t.get_text().split()[0]: t.get_position()[1] for t in ax.texts}
    ordered = [places[k] for k in ("a", "b", "c", "far")]
    assert all(second - first > 0.06 for first, second in pairwise(ordered))


def test_a_figure_is_a_drawing_too_whose_colours_follow_the_screen(tmp_path: Path) -> None:
    drawing = save(draw_bars(), tmp_path / "a.png").with_suffix(".svg")
    text = drawing.read_text()
    assert "prefers-color-scheme:dark" in text
    assert "fill: var(--c" in text
    assert not re.search(r"(fill|stroke): (#222222|#0072b2)", text)
    first = drawing.read_bytes()
    save(draw_bars(), tmp_path / "a.png")
    assert drawing.read_bytes() == first


def test_only_colours_of_the_house_change_in_the_dark() -> None:
    text = themed('<svg width="1"><path id="a" style="fill: #0072b2; stroke: #123456" xlink:href="#0072b2"/></svg>')
    path = text.partition("</style>")[2]
    assert path == '<path id="a" style="fill: var(--c5); stroke: #123456" xlink:href="#0072b2"/></svg>'
    assert "--c5:#0072b2" in text and "--c5:#4aa3df" in text


def test_a_drawing_that_would_be_huge_is_left_to_its_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(draw_bars(), tmp_path / "a.png")
    monkeypatch.setattr(style, "MOST_DRAWN", 100)
    save(draw_bars(), tmp_path / "a.png")
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_a_panel_without_lines_gets_no_legend() -> None:
    _, (one, nothing) = panels(1, 2)
    one.plot([0, 1], [0, 1], label="a line")
    style.legends(one, nothing)
    assert one.get_legend() is not None and nothing.get_legend() is None


def test_a_figure_without_data_is_not_drawn(tmp_path: Path) -> None:
    def drawn(*lines: list[float]) -> bool:
        figure, axes = panels(1, 2)
        for ax, line in zip(axes, lines):
            figures.curves(ax, {"a": Curve([0.0, 1.0], line)}, xlabel="step", ylabel="reward")
        return save(figure, tmp_path / "a.png").exists()

    nothing = [float("nan")] * 2
    assert drawn(nothing, [1.0, 2.0]) and (tmp_path / "a.svg").exists()
    assert not drawn(nothing, nothing) and not (tmp_path / "a.svg").exists()
