"""Statistics and figures of samples, against counting by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.market.logs.worldlog import REJECT
from marlab.market.samples.dataset import empty
from marlab.market.samples.options import Sizes
from marlab.market.samples.stats import describe, draw, quantiles, table
from tests.market.learn_cases import labelled_samples


def test_counts_do_not_depend_on_the_pieces_that_tables_are_read_in(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = labelled_samples()
    whole = describe(samples)
    monkeypatch.setattr("marlab.market.samples.stats.PIECE", 7)
    assert describe(samples) == whole
    ops = samples.micro["op"]
    assert list(whole["ops"].values()) == np.bincount(ops, minlength=3).tolist()
    assert whole["micro"] == len(ops) == sum(map(sum, whole["ops_per_round"].values()))
    assert whole["residual_price"]["n"] == (ops == REJECT).sum() and whole["goal_zero_share"] < 1


def test_quantiles_by_hand() -> None:
    scale = quantiles(np.arange(101.0))
    assert (scale["n"], scale["min"], scale["p50"], scale["p95"], scale["max"]) == (101, 0.0, 50.0, 95.0, 100.0)
    assert quantiles(np.zeros(0)) == {"n": 0}


def test_a_split_without_samples_has_a_column_too(tmp_path: Path) -> None:
    nothing = empty(Sizes())
    text = table({"train": describe(labelled_samples()), "val": describe(nothing)})
    assert text.splitlines()[0].split() == ["train", "val"] and "-" in text
    assert draw(nothing, describe(nothing), tmp_path) == []
    assert len(draw(labelled_samples(), describe(labelled_samples()), tmp_path)) == 3
