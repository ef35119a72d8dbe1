"""Figures of beliefs."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.runs.run import Run, RunOptions
from marlab.market.beliefs import figures
from marlab.market.beliefs.calibration import quality
from marlab.market.beliefs.settings import BeliefsConfig
from tests.market.beliefs.test_calibration import made_up
from tests.market.beliefs_cases import telling_observer


def test_all_are_drawn_with_and_without_strangers(tmp_path: Path) -> None:
    observer = telling_observer((0.8, 0.2, 0.5))._replace(types=("a", "b"))
    with Run.open("market", BeliefsConfig(), RunOptions(output_dir=tmp_path / "run")) as run:
        figures.draw(quality(made_up(), observer), run)
        drawn = {path.name: path.stat().st_size for path in (run.path / "figures").glob("*.png")}
    assert set(drawn) == {"days.png", "mistaken.png", "reliability.png"} and min(drawn.values()) > 5000
