"""Samples made from tracker files: what a decision knew, and what its labels are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.market.logs.tracker import read_tracker, write_tracker
from marlab.market.logs.worldlog import ACCEPT, REJECT
from marlab.market.samples.dataset import Columns, Samples
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from tests.market.tracker_example import document, events, example_log


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    return extract(read_tracker(write_tracker(example_log(), tmp_path)), SampleOptions())


def histories(samples: Samples) -> list[list[list[float]]]:
    micro, offers = samples.micro, samples.tables["offers"]["row"]
    return [offers[a : a + n].tolist() for a, n in zip(micro["history"], micro["history_length"].astype(int))]


def by_decision(samples: Samples) -> Columns:
    return {name: values[np.argsort(samples.micro["seq"], kind="stable")] for name, values in samples.micro.items()}


def test_one_sample_per_action(samples: Samples, tmp_path: Path) -> None:
    actions = events(document(example_log(), tmp_path), "aop_action")
    assert len(samples.micro["op"]) == len(actions) == 6
    assert len(samples.macro["day"]) == 2


def test_histories_end_before_the_decision(samples: Samples) -> None:
    """Rows [quantity, price, delta, mine]; the offer that is the label is never among them."""
    assert histories(samples) == [
        [],
        [],
        [[6, 19, 2, 0]],
        [[5, 9, 0, 1], [4, 10, 2, 0]],
        [[5, 9, 1, 1], [30, 11, 1, 0]],
        [[7, 20, 0, 0]],
    ]


def test_residual_and_baseline_make_the_experts_offer(samples: Samples) -> None:
    micro = by_decision(samples)
    rejects = micro["op"] == REJECT
    made = micro["baseline"][rejects, :2] + micro["residual"][rejects]
    np.testing.assert_allclose(made, [[5, 9], [5, 9], [6, 22]], atol=1e-5)
    valid = rejects & micro["time_valid"]
    assert valid.sum() == 3 and not micro["time_valid"][~rejects].any()


def test_delivery_today_is_a_label(samples: Samples) -> None:
    micro = by_decision(samples)
    assert micro["time_label"][micro["op"] == REJECT].tolist() == [0, 1, 2]
    assert micro["time_shift"].max() == 0
    assert micro["op"].tolist().count(ACCEPT) == 2


def test_a_deal_counts_from_its_signature_on(samples: Samples) -> None:
    """4 units were bought on day 0; they are in the label of day 0, and no decision of day 0 came after them."""
    assert samples.micro["signed"].max() == 0
    bought, nothing = samples.macro["label"][0], samples.macro["label"][1]
    # 4 units for day 2 lie by 3/4 in the first bucket; the need (raw -3) adds nothing
    assert bought[0] == pytest.approx(3) and bought[4] == pytest.approx(1)
    assert nothing[[0, 4, 8, 12]].max() == 0
