"""Faults in the files fail the data and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from marlab.hunt.data.dataset import Part, Rows, load_dataset
from marlab.hunt.data.legacy import with_rows_after_exit
from tests.hunt.diagnose_cases import judged, missed, shuffle_labels, spoilt, statuses, swap_channels


@pytest.mark.parametrize(
    ("change", "found_by"),
    [
        (shuffle_labels, "data/true labels"),
        (swap_channels, "data/replay equality"),
        (with_rows_after_exit, "data/rows after exit"),
    ],
)
def test_faults_in_the_files_fail_the_data(
    change: Callable[[Part, int], Part], found_by: str, rule_data: Path, tmp_path: Path
) -> None:
    report = judged(spoilt(rule_data, tmp_path / "data", change))
    assert statuses(report) == {"data": "fail"}
    assert found_by in missed(report)


def test_the_spoilt_copy_is_faithful_otherwise(rule_data: Path, tmp_path: Path) -> None:
    same = load_dataset(spoilt(rule_data, tmp_path / "data", lambda part, players: part))
    original = load_dataset(rule_data)
    for name in Rows._fields:
        assert torch.equal(getattr(same.rows, name), getattr(original.rows, name)), name
    assert torch.equal(same.offsets, original.offsets) and torch.equal(same.split_of, original.split_of)
