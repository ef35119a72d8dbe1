"""The settings of a diagnosis."""

from __future__ import annotations

import pytest

from marlab.hunt.diagnose.command import DiagnoseConfig
from marlab.lab.errors import UserError


def test_runs_are_named_once_and_in_order() -> None:
    assert DiagnoseConfig("a", ("b", "a", "c")).all_runs == ("a", "b", "c")
    with pytest.raises(UserError, match="Say which run"):
        _ = DiagnoseConfig().all_runs


@pytest.mark.parametrize(("name", "value"), [("episodes", 1), ("belief_games", -1)])
def test_wrong_settings_are_refused(name: str, value: int) -> None:
    with pytest.raises(UserError, match=f"{name} is {value}"):
        DiagnoseConfig("run", **{name: value})  # type: ignore[arg-type]
