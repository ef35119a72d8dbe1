"""Pictures of the models of others."""

from __future__ import annotations

from pathlib import Path

from marlab.hunt.diagnose.goal_pictures import draw_goals
from marlab.hunt.diagnose.goals import diagnose_goals, open_goal_run
from marlab.hunt.selfplay.gates import Gates
from tests.hunt.diagnose.conftest import Runs


def test_everything_that_was_measured_is_drawn(runs: Runs, tmp_path: Path) -> None:
    run = open_goal_run(runs["goals"], "codes", None)
    section, splits = diagnose_goals(run, Gates(), belief_games=4)
    draw_goals(run, splits, section, tmp_path)
    drawn = {picture.file.removesuffix("-codes.png") for picture in section.pictures}
    assert drawn >= {"losses", "epochs", "confusion", "per-action", "reliability", "codes", "belief"}
    assert all((tmp_path / picture.file).stat().st_size > 5_000 for picture in section.pictures)
