"""Switches are declared once, as fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.switches import check_switches, decided, originals, switches
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class Rules:
    count: int = 3
    mode: Literal["fast", "slow"] = "fast"
    end: Literal["cut", "death"] | None = None
    queue: Literal["cyclic", "fifo"] | None = "fifo"


def test_only_open_fields_are_decided() -> None:
    assert switches(Rules) == {"end": ("cut", "death"), "queue": ("cyclic", "fifo")}
    assert originals(Rules) == {"end": "death", "queue": "fifo"}
    assert decided(Rules(), compat=False) == Rules(end="cut") and decided(Rules(), compat=True) == Rules(end="death")


def test_neither_choice_is_refused() -> None:
    check_switches(Rules())
    with pytest.raises(UserError, match="end is 'x'; it must be cut or death"):
        check_switches(Rules(end="x"))  # type: ignore[arg-type]


def test_the_seas_switches() -> None:
    assert COMPAT_SWITCHES == {
        "episode_end": "terminated", "vision_reward": "cliff", "heading_wrap": "lost",
        "override_preroll": "rerandomised",
    }  # fmt: skip
    assert decided(SeaConfig(), compat=True) == SeaConfig(**COMPAT_SWITCHES)
