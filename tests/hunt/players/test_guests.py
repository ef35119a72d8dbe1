"""Settings of guests."""

from __future__ import annotations

import pytest

from marlab.hunt.players.guests import GuestConfig
from marlab.lab.errors import UserError


@pytest.mark.parametrize("change", [{"share": 1.5}, {"stay": 1.0}])
def test_shares_are_shares(change: dict[str, float]) -> None:
    with pytest.raises(UserError, match="expected shares"):
        GuestConfig(**change)
