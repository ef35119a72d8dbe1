"""World models: channels in the wrong place are found, and the worst rows are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.hunt.diagnose.world import (
    channel_match,
    diagnose_world,
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
    run = open_world_run(runs["world"], "dense", None)
    section = diagnose_world(run, Gates(), None)
    each = (run.predicted.planes - run.rows.next_obs.float()).square().mean((1, 2, 3))
    values = {check.name: check.value for check in section.checks}
    assert values["observation MSE"] == pytest.approx(float(each.mean()), rel=1e-4)
    assert {check.module for check in section.checks} == {"world model"}
    picked = pick_samples(run, 3)
    assert each[picked[0]] == each.max() and each[picked].tolist() == sorted(each[picked].tolist(), reverse=True)
    again = open_world_run(runs["world"], "dense", runs["data"])  # measured anew on data that is named
    assert again.test["metrics"]["obs_mse"] == pytest.approx(run.test["metrics"]["obs_mse"])


def test_everything_that_was_measured_is_drawn(runs: Runs, tmp_path: Path) -> None:
    section = diagnose_world(open_world_run(runs["world"], "dense", None), Gates(), tmp_path)
    drawn = {picture.file.removesuffix("-dense.png") for picture in section.pictures}
    assert drawn == {"losses", "channels", "triplets", "unrounded", "channel-match", "calibration", "drift"}
    assert all((tmp_path / picture.file).stat().st_size > 5_000 for picture in section.pictures)
