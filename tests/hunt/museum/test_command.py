"""The settings of a visit."""

from __future__ import annotations

import pytest

from marlab.hunt.museum.command import EXHIBITS, MuseumConfig
from marlab.lab.errors import UserError


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UserError, match="not an exhibit"):
        MuseumConfig("mona-lisa")
    with pytest.raises(UserError, match="rows is 3"):
        MuseumConfig(rows=3)
    assert MuseumConfig().chosen == tuple(EXHIBITS)
