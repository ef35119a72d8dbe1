"""Lists of records over tables of samples, and their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.samples.records import (
    L4Samples,
    MacroSamples,
    MicroSamples,
    load_l4_samples,
    load_samples,
    save_l4_samples,
    save_samples,
)
from tests.market.learn_cases import labelled_samples
from tests.market.sample_tools import records_equal


def test_records_are_rows_of_the_tables() -> None:
    samples = labelled_samples()
    macro, micro, calls = MacroSamples.view(samples), MicroSamples.view(samples), L4Samples.view(samples)
    assert (len(macro), len(micro), len(calls)) == tuple(samples.rows(name) for name in ("macro", "micro", "calls"))
    i = len(micro) // 2
    np.testing.assert_array_equal(micro[i].goal, samples.macro["goal"][samples.micro["macro"][i]])
    assert records_equal(micro[-1], micro[len(micro) - 1]) and len(micro[2:5]) == 3
    assert calls[0].teacher_weights.sum() == pytest.approx(1)
    with pytest.raises(IndexError):
        macro[len(macro)]


def test_files_keep_every_record(tmp_path: Path) -> None:
    samples = labelled_samples()
    macro, micro, calls = MacroSamples.view(samples), MicroSamples.view(samples), L4Samples.view(samples)
    save_samples(macro, micro, tmp_path)
    save_l4_samples(calls, tmp_path)
    macro_again, micro_again = load_samples(tmp_path)
    for made, again in ((macro, macro_again), (micro, micro_again), (calls, load_l4_samples(tmp_path))):
        assert len(made) == len(again) and all(records_equal(made[i], again[i]) for i in range(0, len(made), 17))


def test_a_wrong_horizon_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    macro = MacroSamples.view(labelled_samples())
    with pytest.raises(UserError, match="look 40 days ahead, horizon is 20; give horizon=40"):
        save_samples(macro, [], tmp_path, horizon=20)
    with pytest.raises(UserError, match="holds neither l2_samples"):
        load_samples(tmp_path / "nothing")
    with pytest.raises(UserError, match="There are no MicroSamples to store"):
        MicroSamples.of([])
