"""`marlab market habits` by its flags."""

from __future__ import annotations

import pytest

from marlab.lab.errors import UserError
from marlab.market.habits.command import main


def test_flags_become_settings() -> None:
    config = main.parse(["--steps", "3", "--opponents", "RandomStdAgent", "--seed", "4"]).config
    assert (config.steps, config.opponents, config.seed) == (3, ("RandomStdAgent",), 4)
    with pytest.raises(UserError):
        main.parse(["--draws", "2"])


def test_presets_are_complete() -> None:
    assert main.parse(["--preset", "full"]).config.markets > main.parse(["--preset", "small"]).config.markets
