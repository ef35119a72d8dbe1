"""The pictures of a run, one file each."""

from __future__ import annotations

from pathlib import Path

from marlab.market.clones import figures
from tests.market.clones.test_report import found


class Folder:
    """What a run offers to those who draw."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def figure(self, name: str) -> Path:
        return self.path / name


def test_every_figure_is_drawn(tmp_path: Path) -> None:
    figures.draw(found(), Folder(tmp_path))  # type: ignore[arg-type]
    assert {path.name for path in tmp_path.glob("*.png")} == {"leaving.png", "lots.png", "scores.png"}
    figures.draw({"experts": {}, "scores": {}}, Folder(tmp_path / "none"))  # type: ignore[arg-type]
