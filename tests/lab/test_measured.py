"""A measured value and how it is written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from marlab.lab.measured import Measured, measured, show, written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (3, "3"),
        (3.0, "3"),
        (1234567.0, "1.235e+06"),
        (0.123456, "0.1235"),
        (np.float32(0.5), "0.5"),
        (math.nan, "nan"),
        ("a word", "a word"),
    ],
)
def test_show(value: Any, text: str) -> None:
    assert show(value) == text


def test_a_plain_result_and_one_with_everything() -> None:
    assert measured(3) == Measured(3)
    stored = {"value": 0.9, "low": 0.8, "high": 0.95, "unit": "share", "note": "200 games"}
    assert measured(stored) == Measured(0.9, 0.8, 0.95, "share", "200 games")
    assert str(measured(stored)) == "0.9 [0.8, 0.95] share"


def test_what_is_no_number_is_none() -> None:
    assert measured({"value": 1, "low": "?", "high": math.inf}) == Measured(1)
    assert [Measured(v).number for v in (1, np.float32(2), True, "3", None, math.nan)] == [1.0, 2.0, *[None] * 4]
    assert Measured(1, low=0.5).interval() == ""


def test_fixed_digits_with_a_typographic_minus() -> None:
    assert [written(x, 2) for x in (1.005, -0.5, -0.001)] == ["1.00", "\u22120.50", "0.00"]
