"""Tracker files of all ages become logs, or are refused in one sentence."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.logs.tracker import read_tracker
from marlab.market.logs.worldlog import ACCEPT, AGREED, BROKEN, END, NONE, REJECT, TIMED_OUT
from tests.market.tracker_example import ME, NAMES, document, events, example_log, own, reread, without


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


def test_an_unnamed_world_is_named_by_its_file(tmp_path: Path) -> None:
    doc = document(example_log(), tmp_path) | {"world_id": "unknown"}
    log = reread(doc, tmp_path, "agent_y.json")
    assert log.world_id == "agent_y" and log.missing == {"world_id": 1}


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
