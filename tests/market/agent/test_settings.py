"""What an agent can be told, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marlab.lab.errors import UserError
from marlab.market.agent.settings import AgentSettings, RuleOptions

pytest.importorskip("scml")


@pytest.mark.parametrize(
    "wrong",
    [{"opening_lots": ()}, {"opening_lots": (0,)}, {"small_lot": 31}, {"small_price": 1.5}, {"opening_prices": (2.0,)},
     {"opening_days": -1}, {"hold": -1}, {"loss": 1.0},
     {"price": "high"}, {"lot": 31}, {"lot": -1}],
)  # fmt: skip
def test_options_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"rule.{next(iter(wrong))}"):
        RuleOptions(**wrong)


def test_options_reach_the_rule_by_name_and_unknown_ones_are_refused() -> None:
    told = AgentSettings(mode="heuristic", rule={"opening_days": 5, "opening_lots": [6, 4]})
    assert told.rule_options() == RuleOptions(opening_days=5, opening_lots=(6, 4))
    with pytest.raises(UserError, match="unknown key 'opening_day'"):
        AgentSettings(mode="heuristic", rule={"opening_day": 5})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "fast"}, "mode"),
        ({"l4": "best"}, "l4"),
        ({"decode": "beam"}, "decode"),
        ({"l1": "careful"}, "rules"),
        ({"l1": {"reserve": -1}}, "reserve"),
        ({"horizon": 3}, "10 days"),
        ({"horizon": "x"}, "horizon = 'x'"),
        ({"horizon": 10**9}, "up to 1000"),
        ({"l1": 5}, "l1 = 5"),
        ({"rule": 5}, "rule = 5"),
        ({"min_confidence": "high"}, "min_confidence"),
        ({"l3_model_path": 7}, "l3_model_path = 7"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        AgentSettings(**settings)


def test_one_folder_gives_the_weights_of_all_layers(tmp_path: Path) -> None:
    told = AgentSettings(weights=tmp_path, l3_model_path="own.pt")
    assert told.is_neural and [told.place_of(layer) for layer in ("l2", "l3", "l4")] == [tmp_path, "own.pt", tmp_path]
    assert AgentSettings(weights="some-run").place_of("l4") == Path("runs/market/some-run")
    assert not AgentSettings().is_neural and AgentSettings().place_of("l2") is None


@pytest.mark.parametrize(
    ("settings", "plays"),
    [
        ({}, "learned"),
        ({"l1": "economic"}, "learned"),
        ({"residual_off": True}, "learned"),
        ({"l1": "guide"}, "heuristic"),
        ({"rule": {"opening_days": 5}}, "heuristic"),
        ({"mode": "heuristic"}, "heuristic"),
        ({"weights": "some-run"}, "neural"),
        ({"l3_model_path": "own.pt"}, "neural"),
        ({"mode": "learned", "weights": "some-run"}, "learned"),
    ],
)
def test_the_mode_that_is_left_open(settings: dict[str, Any], plays: str) -> None:
    assert AgentSettings(**settings).plays == plays
