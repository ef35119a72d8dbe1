"""Tracker files: ours read back to the same log, those of others with what they lack, and what is refused."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.logs.tracker import file_name, find_trackers, read_tracker, write_tracker
from marlab.market.logs.worldlog import ACCEPT, AGREED, BROKEN, END, NONE, REJECT, TIMED_OUT, AgentLog
from tests.market.tracker_example import ME, NAMES, example_log

Document = dict[str, Any]


def own(log: AgentLog) -> AgentLog:
    """The log with only its own negotiations, numbered anew: all that a tracker file can hold."""
    n = log.negotiations
    mine = np.flatnonzero((n["seller"] == log.index) | (n["buyer"] == log.index))
    number = {int(i): k for k, i in enumerate(mine)} | {NONE: NONE}
    renumber = lambda t: t | {"negotiation": np.array([number[int(i)] for i in t["negotiation"]])}  # noqa: E731
    return replace(
        log,
        negotiations={name: values[mine] for name, values in n.items()},
        decisions=renumber(log.decisions),
        contracts=renumber(log.contracts),
    )


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


def document(log: AgentLog, folder: Path) -> Document:
    return json.loads(write_tracker(log, folder).read_text())


def reread(changed: Document, folder: Path, name: str = "agent_x.json") -> AgentLog:
    path = folder / name
    path.write_text(json.dumps(changed))
    return read_tracker(path)


def events(doc: Document, *names: str) -> list[Document]:
    return [entry for entry in doc["entries"] if entry["event"] in names]


def without(doc: Document, *names: str) -> Document:
    return doc | {"entries": [entry for entry in doc["entries"] if entry["event"] not in names]}


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


def test_a_log_like_the_first_trackers_wrote_it(tmp_path: Path) -> None:
    """No relative_time, no mechanism id in outcomes, no cost, no bounds, short commitments, a tracked subclass."""
    doc = document(example_log(), tmp_path)
    doc["agent_type"] = "PenguinAgentTracked"
    game = events(doc, "agent_initialized")[0]["data"]
    del game["agents"], game["league"]
    game["agent_type_raw"] = "PenguinAgentTracked"
    game["agent_type_raw_full"] = "litaagent_std.tracked_registry.PenguinAgentTracked"
    for entry in events(doc, "daily_status"):
        bounds = [key for key in entry["data"] if key.startswith(("buy_", "sell_"))]
        for key in (*bounds, "production_cost", "exogenous_reach", "exogenous_in_mean", "n_suppliers"):
            del entry["data"][key]
        entry["data"]["initial_balance"] = 10_000
        for schedule in entry["data"]["commitments"].values():
            del schedule[11:]
    for entry in events(doc, "started"):
        entry["data"] |= {"quantity_range": "5", "time_range": "0", "price_range": "9"}  # a proposal, not the issues
        del entry["data"]["caller"], entry["data"]["min_price"], entry["data"]["max_price"]
    for entry in events(doc, "aop_action"):
        del entry["data"]["relative_time"], entry["data"]["received"], entry["data"]["call"]
    for entry in events(doc, "success", "failure", "signed"):
        for key in ("mechanism_id", "negotiator_id", "rounds", "ended_by"):
            entry["data"].pop(key, None)
    for entry in events(doc, "failure"):
        entry["data"]["reason"] = "negotiation_ended_without_agreement"
    log, whole = reread(without(doc, "financial_report"), tmp_path), own(example_log())
    assert (log.agent_type, log.full_type.rpartition(".")[2]) == ("PenguinAgent", "PenguinAgent")
    assert set(log.names) == set(NAMES) and log.names[log.index] == NAMES[ME]

    days = log.days
    np.testing.assert_array_equal(days.q_in, whole.days.q_in)
    assert list(days.production_cost) == [1, 1] and list(days.initial_balance) == [9000.5, 9000.5]
    assert list(days.buy_quantity_max) == [30, 30] and list(days.sell_day_max) == [10, 11]
    np.testing.assert_allclose(days.buy_price_min, 0.9 * days.price_in)
    np.testing.assert_allclose(days.sell_price_max, 1.1 * days.price_out)
    assert list(days.n_suppliers) == [2, 2]

    for column in ("round", "relative_time", "received_quantity", "received_price", "op", "quantity", "day", "price"):
        np.testing.assert_array_equal(log.decisions[column], whole.decisions[column], err_msg=column)
    assert list(log.decisions["call"]) == [0, 0, 1, 2, 2, 3]
    assert list(log.negotiations["outcome"]) == list(whole.negotiations["outcome"])
    ended = [log.names[i] if i != NONE else None for i in log.negotiations["ended_by"]]
    assert ended == [None, NAMES[ME], NAMES[2], None]
    assert [log.names[i] for i in log.negotiations["caller"]] == ["00Su@0", "03Su@0", "02Co@2", "02Co@2"]
    np.testing.assert_array_equal(log.contracts["negotiation"], whole.contracts["negotiation"])

    expected = {"relative_time": 6, "call": 6, "mechanism_id of an outcome": 4, "mechanism_id of a contract": 2}
    expected |= {"production_cost": 2, "commitments": 2, "buy_price_min": 2, "initial_balance": 1, "n_suppliers": 2}
    expected |= {"outcome of a negotiation": 2, "caller of a negotiation": 4, "price_min of a negotiation": 4}
    assert expected.items() <= log.missing.items()


def test_decisions_without_explicit_actions(tmp_path: Path) -> None:
    """An own offer is REJECT, an accept ACCEPT, a reject END, and an offer nobody answered was left: END."""
    doc = without(document(example_log(), tmp_path), "aop_action")
    log, whole = reread(doc, tmp_path), own(example_log())
    for column in ("negotiation", "round", "received_quantity", "op", "quantity", "day", "price"):
        np.testing.assert_array_equal(log.decisions[column], whole.decisions[column], err_msg=column)
    assert log.missing["aop_action"] == 6

    unanswered = reread(without(doc, "reject"), tmp_path)
    np.testing.assert_array_equal(unanswered.decisions["op"], whole.decisions["op"])

    for entry in doc["entries"]:  # a tracker that writes a counter offer as reject and offer_made
        if entry["event"] == "accept" and entry["day"] == 0:
            entry["event"] = "reject"
            at = doc["entries"].index(entry)
    doc["entries"].insert(at + 1, {**doc["entries"][at], "event": "offer_made"})
    two = reread(doc, tmp_path)
    assert list(two.decisions["op"]) == [REJECT, REJECT, REJECT, REJECT, END, ACCEPT]
    assert two.decisions["quantity"][3] == 4


def test_outcomes_and_deals_that_the_file_only_implies(tmp_path: Path) -> None:
    doc = document(example_log(), tmp_path)
    unsigned = reread(without(doc, "signed"), tmp_path)
    assert unsigned.missing == {"contract of a success": 2}
    assert list(unsigned.contracts["quantity"]) == [4, 7]
    assert list(unsigned.contracts["negotiation"]) == [0, 3]
    silent = reread(without(doc, "success", "failure"), tmp_path)
    assert list(silent.negotiations["outcome"]) == [AGREED, BROKEN, BROKEN, AGREED]
    for entry in events(doc, "failure"):
        entry["data"] |= {"reason": "timedout", "ended_by": None}
    assert list(reread(doc, tmp_path).negotiations["outcome"]) == [AGREED, TIMED_OUT, TIMED_OUT, AGREED]


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


def test_an_unnamed_world_is_named_by_its_file(tmp_path: Path) -> None:
    doc = document(example_log(), tmp_path) | {"world_id": "unknown"}
    log = reread(doc, tmp_path, "agent_y.json")
    assert log.world_id == "agent_y" and log.missing == {"world_id": 1}


@pytest.mark.parametrize("key", ["balance", "inventory_input", "commitments", "n_steps"])
def test_what_no_rule_can_replace(tmp_path: Path, key: str) -> None:
    doc = document(example_log(), tmp_path)
    events(doc, "agent_initialized")[0]["data"].pop(key, None)
    del events(doc, "daily_status")[1]["data"][key]
    with pytest.raises(UserError, match=f"agent_x.json, day 1: daily_status has no {key}"):
        reread(doc, tmp_path)


def test_oneshot_is_refused(tmp_path: Path) -> None:
    sentence = "agent_x.json is a log of a OneShot world; only the Standard league"
    doc = document(example_log(), tmp_path)
    for entry in events(doc, "started"):
        entry["data"]["time_range"] = [entry["day"], entry["day"]]
    with pytest.raises(UserError, match=sentence):
        reread(doc, tmp_path)
    doc = document(example_log(), tmp_path)
    events(doc, "agent_initialized")[0]["data"]["league"] = "oneshot"
    with pytest.raises(UserError, match=sentence):
        reread(doc, tmp_path)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "agent_bad.json"
    for content in (b"{", b"[]", b'{"entries": 3}', b"\x80\x04pickle", gzip.compress(b"{}")[:8], b"\x1f\x8b\x08broken"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"agent_bad.json is not a tracker log"):
            read_tracker(path)
    with pytest.raises(UserError, match="not a tracker log"):
        read_tracker(tmp_path / "none.json")


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


def test_damaged_files_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    """Any value may be missing or of another kind: never a traceback."""
    text = json.dumps(document(example_log(), tmp_path))
    rng = random.Random(0)
    wrong = [None, True, -1, 10**400, 1.5, "x", [], [None, 2], {}, float("nan")]
    refused = 0
    for _ in range(300):
        doc = json.loads(text)
        entry = rng.choice(doc["entries"])
        holder = rng.choice([doc, entry, entry["data"], entry["data"]])
        key = rng.choice(list(holder))
        if rng.random() < 0.3:
            del holder[key]
        else:
            holder[key] = rng.choice(wrong)
        try:
            reread(doc, tmp_path)
        except UserError as error:
            refused += 1
            assert str(error).startswith(str(tmp_path))
    assert 0 < refused < 100
