"""Settings of data collection that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.game.config import game_config
from marlab.lab.errors import UserError


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rows": 0}, "expected 1 or more"),
        ({"rand_share": 1.5}, "expected .*share"),
        ({"game": game_config("msg_4x4")}, "no stag and hare players"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        HuntCollectConfig(**changes)
