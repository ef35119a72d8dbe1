"""Pictures of a world model."""

from __future__ import annotations

from pathlib import Path

from marlab.hunt.diagnose.world import diagnose_world, open_world_run
from marlab.hunt.diagnose.world_pictures import draw_world
from marlab.hunt.training.gates import Gates
from tests.hunt.diagnose.conftest import Runs


def test_everything_that_was_measured_is_drawn(runs: Runs, tmp_path: Path) -> None:
    run = open_world_run(runs["world"], "dense", None)
    section, seen = diagnose_world(run, Gates())
    draw_world(run, seen, section, tmp_path)
    drawn = {picture.file.removesuffix("-dense.png") for picture in section.pictures}
    assert drawn >= {"world-training", "channels", "triplets", "unrounded", "channel-match", "calibration", "drift"}
    assert all((tmp_path / picture.file).stat().st_size > 5_000 for picture in section.pictures)
