"""Settings that cannot be are refused."""

from __future__ import annotations

import pytest

from marlab.lab.errors import UserError
from marlab.market.submit.settings import SubmitConfig


def test_a_world_needs_some_days() -> None:
    with pytest.raises(UserError, match="days"):
        SubmitConfig("LitaAgentHRL", days=2)
    with pytest.raises(UserError, match="seed"):
        SubmitConfig("LitaAgentHRL", seed=-1)
