"""Settings of the world model that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.lab.errors import UserError


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"rows": -1}, "rows is -1"),
        ({"channel_weights": (1.0,)}, "channel_weights belong to --model dense"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        PretrainWorldConfig(**changes)
