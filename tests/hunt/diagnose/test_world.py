"""World models: channels in the wrong place are found, and the worst rows are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.hunt.diagnose.world import (
    channel_match,
    diagnose_world,
    draw_world,
    mismatches,
    open_world_run,
    pick_samples,
)
from marlab.hunt.selfplay.gates import Gates
from tests.hunt.diagnose.conftest import Runs
from tests.hunt.helpers import seeded


def test_channels_that_changed_places_are_found() -> None:
    true = (torch.rand(50, 4, 4, 5, generator=seeded(0)) > 0.7).float()
    true[..., 4] = 0  # never there, so it can resemble nothing
    noisy = true + 0.1 * torch.randn(true.shape, generator=seeded(1))
    assert mismatches(channel_match(noisy, true)) == []
    swapped = channel_match(noisy[..., [0, 2, 1, 3, 4]], true)
    assert mismatches(swapped) == [(1, 2), (2, 1)]
    assert swapped[4].abs().max() < 0.1 and swapped[0, 0] > 0.9


def test_a_model_is_judged_on_held_out_rows(runs: Runs) -> None:
    section, seen = diagnose_world(open_world_run(runs["world"], "dense", None), Gates())
    error = (seen.predicted.planes - seen.rows.next_obs.float()).square().mean()
    values = {check.name: check.value for check in section.checks}
    assert values["observation MSE"] == pytest.approx(float(error), rel=1e-4)
    assert {check.module for check in section.checks} == {"world model"}
    worst = (seen.predicted.planes - seen.rows.next_obs.float()).square().mean((1, 2, 3))
    picked = pick_samples(seen, 3)
    assert worst[picked[0]] == worst.max() and worst[picked].tolist() == sorted(worst[picked].tolist(), reverse=True)


def test_everything_that_was_measured_is_drawn(runs: Runs, tmp_path: Path) -> None:
    run = open_world_run(runs["world"], "dense", None)
    section, seen = diagnose_world(run, Gates())
    draw_world(run, seen, section, tmp_path)
    drawn = {picture.file.removesuffix("-dense.png") for picture in section.pictures}
    assert drawn >= {"world-training", "channels", "triplets", "unrounded", "channel-match", "calibration", "drift"}
    assert all((tmp_path / picture.file).stat().st_size > 5_000 for picture in section.pictures)
