from __future__ import annotations

import pytest

from marlab.fish.training.selfplay_config import SelfPlayConfig
from marlab.lab.errors import UserError


def test_layers_and_total() -> None:
    config = SelfPlayConfig(hidden="16, 8", rounds=3, iterations=5)
    assert config.layers == (16, 8) and config.total == 30


@pytest.mark.parametrize(
    "settings",
    [
        {"newest": 0.0}, {"newest": 1.5}, {"hidden": "x"}, {"hidden": "0"}, {"rounds": 0},
        {"num_envs": 10**12}, {"hidden": "8,999999999999"},
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UserError):
        SelfPlayConfig(**settings)  # type: ignore[arg-type]
