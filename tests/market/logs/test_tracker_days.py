"""Mornings of tracker files."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from tests.market.tracker_example import document, events, example_log, reread, without


def test_a_morning_written_in_the_evening_is_left_out(tmp_path: Path) -> None:
    doc = document(example_log(), tmp_path)
    late = events(doc, "daily_status")[1]
    doc["entries"].remove(late)
    doc["entries"].append(late)
    log = reread(doc, tmp_path)
    assert list(log.days.day) == [0] and len(log.decisions["seq"]) == 5
    assert log.missing["daily_status of the morning"] == log.missing["daily_status of a decision"] == 1
    with pytest.raises(UserError, match="no daily_status of a morning"):
        reread(without(doc, "daily_status"), tmp_path)


@pytest.mark.parametrize("key", ["balance", "inventory_input", "commitments", "n_steps"])
def test_what_no_rule_can_replace(tmp_path: Path, key: str) -> None:
    doc = document(example_log(), tmp_path)
    events(doc, "agent_initialized")[0]["data"].pop(key, None)
    del events(doc, "daily_status")[1]["data"][key]
    with pytest.raises(UserError, match=f"agent_x.json, day 1: daily_status has no {key}"):
        reread(doc, tmp_path)
