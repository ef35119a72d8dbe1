"""The settings of the command."""

from __future__ import annotations

import pytest

from marlab.hunt.watch.command import WatchConfig
from marlab.lab.errors import UserError


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "Name an agent"),
        ({"agent": "NS", "game": "msg_4x4"}, "not a stag hunt"),
        ({"agent": "NS", "seat": 5}, "seat is 5"),
        ({"agent": "NS", "team": "NS"}, "has 1 members"),
        ({"agent": "NS", "after": -1}, "after is -1"),
        ({"agent": "NS", "seconds": 0.0}, "seconds is 0"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        WatchConfig(**wrong)  # type: ignore[arg-type]
