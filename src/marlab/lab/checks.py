"""Checks of a config's values: each raises one sentence that names the field, its value and what would be right.

def __post_init__(self) -> None:
    positive(self, "num_envs", "learning_rate")
    share(self, "dropout", prefix="policy_")

`prefix` stands before the names in the sentence, as it does before the flags of a group.
"""

from __future__ import annotations

from typing import Any

from marlab.lab.config import is_finite
from marlab.lab.errors import UserError

WIDEST = 16_384
"""The widest layer of a network that is asked for in earnest; wider ones ask for any amount of memory."""


def positive(config: Any, *names: str, prefix: str = "") -> None:
    _each(config, names, prefix, lambda value: value > 0, "a number above 0")


def at_least(config: Any, least: float, *names: str, prefix: str = "") -> None:
    _each(config, names, prefix, lambda value: value >= least, f"{least:g} or more")


def at_most(config: Any, most: float, *names: str, prefix: str = "") -> None:
    """For what memory is set aside for before work begins: beyond it, something else was meant."""
    _each(config, names, prefix, lambda value: value <= most, f"{most:,} or less")


def share(config: Any, *names: str, prefix: str = "") -> None:
    """From 0 to 1, both included."""
    _each(config, names, prefix, lambda value: 0 <= value <= 1, "a share from 0 to 1")


def finite(config: Any, *names: str, prefix: str = "") -> None:
    _each(config, names, prefix, lambda value: True, "a finite number")


def _each(config: Any, names: tuple[str, ...], prefix: str, right: Any, expected: str) -> None:
    for name in names:
        value = getattr(config, name)
        if not (is_finite(value) and right(value)):
            raise UserError(f"{prefix}{name} is {value!r}, expected {expected}.")
