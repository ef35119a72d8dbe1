"""Settings of the search: what is refused, and why."""

from __future__ import annotations

import pytest

from marlab.lab.errors import UserError
from marlab.lab.search.search import (
    SearchConfig,
)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"simulations": 0}, "simulations"),
        ({"c1": 0.0}, "c1"),
        ({"max_depth": 0}, "max_depth"),
        ({"root": "ucb"}, "root"),
        ({"value_range": (1.0, 1.0)}, "value_range"),
        ({"dirichlet_share": 1.5}, "dirichlet_share"),
        ({"root": "gumbel", "legacy_q": True}, "legacy_q"),
        ({"outcomes": 0}, "outcomes"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        SearchConfig(**wrong)
