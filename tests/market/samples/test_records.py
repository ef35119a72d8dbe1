"""Lists of records over tables of samples, and their files."""

from __future__ import annotations

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.samples.records import (
    L4Samples,
    MacroSamples,
    MicroSamples,
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


def test_no_records_are_no_list() -> None:
    with pytest.raises(UserError, match="There are no MicroSamples to store"):
        MicroSamples.of([])
