"""Settings that cannot work are refused with one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from marlab.lab.errors import UserError
from marlab.market.clones.settings import CloneConfig


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"worlds": 2}, "worlds"),
        ({"experts": ()}, "experts is empty"),
        ({"experts": ("A", "A")}, "named twice"),
        ({"shapes": ("1x4",)}, "levels x factories"),
        ({"shapes": ()}, "levels x factories"),
        ({"days": (9, 5)}, "days"),
        ({"held_out": 0.5, "validation": 0.5}, "less than a tenth"),
        ({"lr": 0.0}, "lr"),
    ],
)
def test_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        CloneConfig(**changes)
