"""Settings of online learning refuse what cannot be played."""

from __future__ import annotations

import pytest

from marlab.lab.errors import UserError
from marlab.market.online.settings import OnlineConfig


@pytest.mark.parametrize(
    "wrong",
    [
        {"worlds": 0}, {"days": (60, 50)}, {"generation_days": 3}, {"share": 1.5}, {"shapes": ("9x9",)},
        {"opponents": ("Nobody",)}, {"learning_rate": 0.0}, {"steer_days": 2},
        {"outright": True}, {"algo": "ppo", "outright": True},
        {"past_selves": 10**30}, {"worlds": 10**7}, {"real_worlds": 10**40}, {"hidden": (10**9,)}, {"days": (5, 10**9)},
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        OnlineConfig(**wrong)  # type: ignore[arg-type]
