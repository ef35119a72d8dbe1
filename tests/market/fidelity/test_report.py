"""Two markets side by side: standard errors, ranks and the gate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marlab.market.fidelity.plan import FidelityConfig, seats_of
from marlab.market.fidelity.report import Line, Mean, as_json, as_markdown, compared, mean, spearman

pytest.importorskip("scml")


def test_seats_of_a_market_count_together() -> None:
    values, groups = np.array([1.0, 1.0, 3.0, 3.0]), np.array([5, 5, 9, 9])
    # deviations from 2 by market: -2 and 2; 2/1 * (4 + 4) = 16, its root 4 over 4 values
    assert mean(values, groups) == (2.0, 1.0)
    alone = mean(values, np.arange(4))
    assert alone.error == pytest.approx(np.std(values, ddof=1) / 2)


def test_spearman_counts_ranks_and_shares_equal_ones() -> None:
    assert spearman([1, 2, 3], [10, 20, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 3, 4], [1, 2, 2, 3]) == pytest.approx(3 / math.sqrt(10))
    assert spearman([1, 1], [1, 2]) == 0


@pytest.mark.parametrize(
    ("real", "vector", "holds"),
    [
        (Mean(-0.10, 0.02), -0.06, True),
        (Mean(-0.10, 0.02), -0.04, False),
        (Mean(-0.10, 0.02), -0.21, False),
        (Mean(-0.10, 0.02), 0.06, False),
        (Mean(-0.03, 0.02), 0.06, None),
    ],
)
def test_clear_differences_need_the_same_sign_and_size(real: Mean, vector: float, holds: bool | None) -> None:
    assert Line("first", "a", real, Mean(vector, 0.01)).holds is holds


def test_complete_seats_count_position_by_position() -> None:
    config = FidelityConfig(sellers=("rule=A", "good=B", "bad=C"), configs=6)
    seats = seats_of(config)
    rng = np.random.default_rng(0)
    level = rng.normal(1, 0.3, len(seats))
    real = level + np.array([0, 0.1, -0.2])[:, None] + rng.normal(0, 0.01, (3, len(seats)))
    real[2, 0] = np.nan
    vector = np.stack([real + 0.05, real + 0.05], 2)
    vector[:, :, 1] = np.nan  # begun: one repeat of two
    vector[0, 1] = np.nan
    found = compared(config.names, seats, real, vector)
    assert sum(found.seats.values()) == len(seats) - 2 and found.repeats == 1 and found.markets == 6
    assert [line.seller for line in found.lines] == ["good", "bad"] * 2 and found.ranks_alike
    assert found.lines[0].real.value == pytest.approx(0.1, abs=0.01)
    assert found.lines[0].vector.value == pytest.approx(found.lines[0].real.value)
    assert found.correlation == {"first": pytest.approx(1), "middle": pytest.approx(1)}
    text = as_markdown(found)
    assert "| middle | bad | -0.2" in text and "Spearman, first: 1.00" in text
    assert as_json(found)["ranks_alike"] is True
    wrong = compared(config.names, seats, real, 2 * real[0, :, None] - vector)
    assert not wrong.ranks_alike and [line.holds for line in wrong.lines] == [False] * 4
    nothing = compared(config.names, seats, real * np.nan, vector)
    assert nothing.lines == [] and nothing.markets == 0
    vector[1, :, 1] = vector[1, :, 0] + 0.2  # one of them was played twice: its mean counts
    more = compared(config.names, seats, real, vector)
    assert more.lines[0].vector.value == pytest.approx(found.lines[0].vector.value + 0.1)
    assert more.lines[1].vector.value == found.lines[1].vector.value and more.repeats == 1
