"""Impossible settings are refused with one sentence."""

from __future__ import annotations

import pytest

from examples.tiny_world.config import TinyConfig
from marlab.lab.errors import UserError


@pytest.mark.parametrize("settings", [{"n_cells": 8}, {"n_cells": 1}, {"rings": 0}, {"iterations": -1}])
def test_impossible_settings(settings: dict[str, int]) -> None:
    with pytest.raises(UserError, match="expected"):
        TinyConfig(**settings)  # type: ignore[arg-type]
