"""Checks of config values: one sentence with field, value and what would be right."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from marlab.lab.checks import at_least, at_most, finite, positive, share
from marlab.lab.errors import UserError


def test_right_values_pass() -> None:
    config = SimpleNamespace(a=1, b=0.0, c=1.0, d=-3.5)
    positive(config, "a", "c")
    at_least(config, 0, "a", "b", "c")
    share(config, "b", "c")
    finite(config, "a", "b", "c", "d")


@pytest.mark.parametrize(
    ("check", "value", "said"),
    [
        (positive, 0, "x is 0, expected a number above 0."),
        (positive, math.inf, "x is inf, expected a number above 0."),
        (share, 1.01, "x is 1.01, expected a share from 0 to 1."),
        (finite, math.nan, "x is nan, expected a finite number."),
    ],
)
def test_wrong_values_are_one_sentence(check, value, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UserError) as error:
        check(SimpleNamespace(x=value), "x")
    assert str(error.value) == said


def test_at_least() -> None:
    with pytest.raises(UserError, match=r"n is 1, expected 2 or more\."):
        at_least(SimpleNamespace(n=1), 2, "n")


def test_at_most() -> None:
    at_most(SimpleNamespace(n=1000), 1000, "n")
    with pytest.raises(UserError, match="n is 1001, expected 1,000 or less"):
        at_most(SimpleNamespace(n=1001), 1000, "n")
