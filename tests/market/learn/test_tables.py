"""Batches hold what was known before a decision, and nothing of its answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.learn.tables import DayTable, DecisionTable, RoundTable
from marlab.market.logs.worldlog import REJECT
from marlab.market.samples.dataset import Samples
from tests.market.learn_cases import CPU, labelled_samples


@pytest.fixture(scope="module")
def samples() -> Samples:
    return labelled_samples()


def test_histories_do_not_hold_the_answer(samples: Samples) -> None:
    index = torch.from_numpy(np.flatnonzero(samples.micro["op"] == REJECT))
    causal = DecisionTable(samples, CPU).batch(index)
    assert (causal.inputs.history[:, -1, 3] == 0).all()  # the last row, if any, is the partner's


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [
        ("macro", "label", DayTable),
        ("macro", "goal", DecisionTable),
        ("micro", "aux", DecisionTable),
        ("micro", "thread", RoundTable),
    ],
)
def test_values_that_are_no_numbers_are_named(table: str, column: str, kind: type[Any]) -> None:
    samples = labelled_samples()
    broken = {**samples.tables[table], column: samples.tables[table][column].copy()}
    broken[column][3] = np.nan
    with pytest.raises(UserError, match=rf"column {table}\.{column}, row 3"):
        kind(Samples(samples.sizes, samples.logs, {**samples.tables, table: broken}), CPU)
