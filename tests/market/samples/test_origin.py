"""What records share survives being split, joined, saved and loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.rules.l1 import L1Options
from marlab.market.samples.npz import load_samples, save_samples
from marlab.market.samples.options import SampleOptions
from marlab.market.samples.origin import DAYS, UNKNOWN, Origin, guessed_days, joined
from marlab.market.samples.records import MicroSamples
from tests.market.learn_cases import labelled_samples


def test_records_of_several_lists_keep_their_days() -> None:
    micro = MicroSamples.view(labelled_samples(), SampleOptions())
    again = MicroSamples.view(labelled_samples(), SampleOptions())
    both = MicroSamples.of([*micro[5:9], *again[2:4]])
    days = both.origin.days
    assert days is not None and len(days["reward"]) == 2 * labelled_samples().rows("macro")
    assert days["log"].max() == 2 * len(labelled_samples().logs) - 1 and (np.diff(days["log"]) >= 0).all()
    for i, record in enumerate([*micro[5:9], *again[2:4]]):
        assert days["reward"][both.columns["day_rows"][i]] == record.reward
        assert days["day"][both.columns["day_rows"][i]] == record.day


def test_records_made_in_different_ways_are_not_joined() -> None:
    one = MicroSamples.view(labelled_samples(), SampleOptions())
    other = MicroSamples.view(labelled_samples(), SampleOptions(l1=L1Options(reserve=3)))
    with pytest.raises(UserError, match=r"made in different ways: l1\.reserve is 1000\.0 and 3\."):
        MicroSamples.of([one[0], other[0]])
    assert joined([UNKNOWN])[0].options is None


def test_files_keep_options_and_days(tmp_path: Path) -> None:
    options = SampleOptions(l1=L1Options(rules="economic", short_reserve=True))
    micro = MicroSamples.view(labelled_samples(), options)
    save_samples([], micro, tmp_path)
    origin = load_samples(tmp_path)[1].origin  # type: ignore[attr-defined]
    assert origin.options == options
    for name in DAYS:
        np.testing.assert_array_equal(origin.days[name], micro.origin.days[name])  # type: ignore[index]


@pytest.mark.parametrize("stored", [b"abc", b"[]", b"{}"])
def test_damaged_options_are_refused(stored: bytes) -> None:
    with pytest.raises(UserError, match="readable way"):
        Origin.unpacked({"sample_options": np.frombuffer(stored, np.uint8)}, "file")
    with pytest.raises(UserError, match="days of logs are not complete"):
        Origin.unpacked({"days_log": np.zeros(3)}, "file")


def test_days_of_records_made_by_hand_are_counted_once() -> None:
    days, rows = guessed_days(np.array([0, 0, 0, 1]), np.array([2, 2, 4, -1]), np.array([5.0, 5.0, 7.0, 9.0]))
    assert days["reward"][:2].tolist() == [5.0, 7.0] and np.isnan(days["reward"][2])
    assert rows.tolist() == [0, 0, 1, 2]
