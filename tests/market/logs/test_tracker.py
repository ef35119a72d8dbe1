"""Tracker files: ours read back to the same log, those of others with what they lack, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.market.logs.tracker import file_name, find_trackers, read_tracker, write_tracker
from marlab.market.logs.worldlog import AgentLog
from tests.market.tracker_example import document, events, example_log, own


def assert_same(read: AgentLog, log: AgentLog) -> None:
    """Equal to the last bit, but for `seq`, of which only the order counts."""
    expected = own(log)
    for name, mine, theirs in zip(log.days._fields, read.days, expected.days):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    for name in ("negotiations", "decisions", "contracts", "prices", "reports"):
        mine, theirs = getattr(read, name), getattr(expected, name)
        assert mine.keys() == theirs.keys()
        for column in mine.keys() - {"seq"}:
            np.testing.assert_array_equal(mine[column], theirs[column], err_msg=f"{name}.{column}")
    first, second = (
        np.argsort(np.concatenate([x.decisions["seq"], x.contracts["seq"]]), kind="stable") for x in (read, expected)
    )
    np.testing.assert_array_equal(first, second)
    for name in ("world_id", "agent_id", "agent_type", "full_type", "index", "names", "final_balance", "missing"):
        assert getattr(read, name) == getattr(expected, name), name


@pytest.mark.parametrize("compressed", [False, True])
def test_export_reads_back_to_the_same_log(tmp_path: Path, compressed: bool) -> None:
    log = example_log()
    path = write_tracker(log, tmp_path, compressed=compressed)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == compressed == (path.suffix == ".gz")
    assert_same(read_tracker(path), log)


def test_the_name_of_a_file() -> None:
    # sha1("world/1") starts with the 12 digits below; printf 'world/1' | sha1sum
    assert file_name("01Pe@1", "world/1") == "agent_01Pe_at_1_world_world_1_d49bf2d2075f.json"
    assert len(file_name("a", "w" * 90)) == len("agent_a_world_") + 40 + 1 + 12 + 5


def test_what_a_file_contains(tmp_path: Path) -> None:
    doc = document(example_log(), tmp_path)
    assert list(doc) == ["agent_id", "agent_type", "world_id", "stats", "time_series", "entries"]
    keys = ["timestamp", "agent_id", "agent_type", "world_id", "day", "category", "event", "data"]
    assert all(list(entry) == keys for entry in doc["entries"])
    assert doc["time_series"]["balance"] == [[0, 9000.5], [1, 8900.5]]
    told = [(e["day"], e["event"]) for e in doc["entries"]]
    assert told == [
        (0, "agent_initialized"),
        (0, "daily_status"),
        (0, "state"),
        *[(0, "started")] * 3,
        (0, "signed"),  # exogenous
        *[(0, "offer_made"), (0, "aop_action")] * 2,
        *[(0, "offer_received"), (0, "offer_made"), (0, "aop_action")],
        *[(0, "offer_received"), (0, "accept"), (0, "aop_action")],
        *[(0, "offer_received"), (0, "reject"), (0, "aop_action")],
        *[(0, "signed"), (0, "success")],
        *[(0, "failure")] * 2,
        *[(0, "financial_report")] * 2,
        *[(1, "daily_status"), (1, "state"), (1, "started")],
        *[(1, "offer_received"), (1, "accept"), (1, "aop_action"), (1, "signed"), (1, "success")],
    ]
    assert doc["stats"]["negotiations_success"] == 2 and doc["stats"]["offers_made"] == 3
    status = events(doc, "daily_status")[0]["data"]
    assert status["commitments"]["Payables"][3] == 55.7 and len(status["commitments"]["Q_in"]) == 41
    assert (status["needed_supplies"], status["needed_supplies_raw"]) == (0, -3)
    action = events(doc, "aop_action")[2]["data"]
    assert (action["action_op"], action["role"], action["partner"]) == ("REJECT", "seller", "02Co@2")
    assert action["offer"] == {"quantity": 6, "delivery_day": 2, "unit_price": 22, "round": 0}
    assert [e["data"]["mechanism_id"] for e in events(doc, "success", "failure")] == ["n0", "n2", "n3", "n4"]
    assert [e["data"]["reason"] for e in events(doc, "failure")] == ["broken", "broken"]


def test_every_morning_precedes_the_offers_of_its_day(tmp_path: Path) -> None:
    seen: set[int] = set()
    for entry in document(example_log(), tmp_path)["entries"]:
        if entry["event"] == "daily_status":
            seen.add(entry["day"])
        elif entry["category"] == "negotiation":
            assert entry["day"] in seen


def test_two_files_of_one_agent_stay_two_logs(tmp_path: Path) -> None:
    """The same agent id in two worlds of one folder: the days of both, nothing mixed."""
    for world in ("world-a", "world-b"):
        write_tracker(example_log(world), tmp_path / "batch" / "tracker_logs")
    write_tracker(example_log("world-c"), tmp_path, compressed=True)
    (tmp_path / "batch" / "tracker_logs" / "tracker_summary.json").write_text("{}")
    (tmp_path / "batch" / "agent_not_in_a_tracker_folder.json").write_text("{}")
    logs = [read_tracker(path) for path in find_trackers(tmp_path)]
    assert sorted(log.world_id for log in logs) == ["world-a", "world-b", "world-c"]
    assert sum(log.days.day.size for log in logs) == 6
