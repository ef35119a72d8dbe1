"""What trackers write in many ways means one thing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from marlab.lab.errors import UserError
from marlab.market.logs.tracker import read_tracker, write_tracker
from marlab.market.logs.tracker_words import number, numbers, parse, plain, roles_of, terms, whole, world_name
from tests.market.tracker_example import example_log


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (3, 3.0),
        (2.5, 2.5),
        (True, None),
        ("3", None),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        (10**400, None),
    ],
)
def test_numbers_are_finite_numbers(value: Any, known: float | None) -> None:
    assert number(value) == known
    assert numbers([value]) == (None if known is None else [known])
    assert whole(value) == (None if known is None else int(known))


def test_plain_numbers_lose_no_digit() -> None:
    assert plain(4.0) == 4 and isinstance(plain(4.0), int) and plain(0.1 + 0.2) == 0.1 + 0.2


@pytest.mark.parametrize(
    "offer", [(5, 12, 20), [5, 12, 20.0], {"quantity": 5, "time": 12, "unit_price": 20},
              {"quantity": 5, "delivery_day": 12, "price": 20}]
)  # fmt: skip
def test_an_offer_is_read_in_all_spellings(offer: Any) -> None:
    assert terms(offer) == (5, 12, 20)


@pytest.mark.parametrize("offer", [None, (1, 2), (1, 2, None), {"quantity": 5, "time": 12}, "5 12 20"])
def test_half_an_offer_is_none(offer: Any) -> None:
    assert terms(offer) is None


def test_names_of_worlds_and_roles() -> None:
    assert world_name("w1", Path("a.json")) == "w1"
    assert world_name("unknown", Path("agent_x.json.gz")) == world_name(None, Path("agent_x.json")) == "agent_x"
    entries = [
        {"data": {"partner": "a", "role": "buyer"}},
        {"data": {"partner": "a", "role": "seller"}},
        {"data": 3},
        {"data": {"partner": "b", "role": "judge"}},
    ]
    assert roles_of(entries) == {"a": "buyer"}


@pytest.mark.parametrize("content", ["[" * 100_000, '{"entries": [' + "9" * 5000 + "]}", "nonsense", "[]"])
def test_what_is_no_tracker_log_is_told_in_one_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "agent_x.json"
    path.write_text(content)
    with pytest.raises(UserError, match="is not a tracker log"):
        parse(path)


def test_wild_numbers_in_a_tracker_log_cost_the_log_and_nothing_else(tmp_path: Path) -> None:
    path = write_tracker(example_log("a"), tmp_path)
    told = json.loads(path.read_text())
    for entry in told["entries"]:
        entry["day"] = 10**300
    path.write_text(json.dumps(told))
    with pytest.raises(UserError, match="no daily_status"):
        read_tracker(path)
    assert len(read_tracker(write_tracker(example_log("b"), tmp_path)).days) == 2


def test_half_a_pair_of_surrogates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"entries": [], "world_id": "w\\ud800"}')
    with pytest.raises(UserError, match="is not a tracker log"):
        parse(tmp_path / "a.json")
    (tmp_path / "a.json").write_text('{"entries": [], "world_id": "\\ud83d\\ude00"}')
    assert parse(tmp_path / "a.json")["world_id"] == "😀"
