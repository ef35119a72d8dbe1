"""The settings of a sweep: what is refused, and what decides its results."""

from __future__ import annotations

from typing import Any

import pytest

from marlab.lab.errors import UserError
from marlab.lab.sweep.config import SweepCommand, SweepConfig


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"words": ()}, "Say what to train"), ({"set": ("a",)}, "expected NAME=VALUE"), ({"seeds": "x"}, "--seeds is"),
        ({"draws": 0}, "draws is 0"), ({"rungs": (3, 3)}, "rising numbers"), ({"rungs": (0, 3)}, "rising numbers"),
        ({"halving": "loss"}, "needs --rungs"), ({"keep": 1.0}, "keep is 1"), ({"set": ("a=0.1..0.2",)}, "--draws"),
    ],
)  # fmt: skip
def test_what_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        SweepConfig(**{"words": ("fish", "train"), **settings})


def test_the_engine_decides_nothing() -> None:
    words = ("fish", "train")
    assert SweepCommand(words=words, engine="serial", quiet=True).run_config() == SweepConfig(words)
