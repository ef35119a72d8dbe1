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
        ({"agent": "NS", "game": "msh_4x4", "seat": 5}, "seat is 5"),
        ({"agent": "NS", "game": "msh_4x4", "team": "NS"}, "has 1 members, expected 3"),
        ({"agent": "NS", "game": "msh_12x12_6p", "team": "3NS"}, "has 3 members, expected 5"),
        ({"agent": "NS", "after": -1}, "after is -1"),
        ({"agent": "NS", "seconds": 0.0}, "seconds is 0"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=told):
        WatchConfig(**wrong)  # type: ignore[arg-type]
