"""Sizes of a check that say nothing are refused."""

from __future__ import annotations

import pytest

from marlab.hunt.exact.config import CheckConfig
from marlab.lab.errors import UserError


@pytest.mark.parametrize("name", ["episodes", "layouts"])
def test_two_are_the_least(name: str) -> None:
    with pytest.raises(UserError, match=f"{name} is 1, expected 2 or more"):
        CheckConfig(**{name: 1})  # type: ignore[arg-type]
