"""A real world, recorded and exported: its tracker files hold the same games, and make the same samples."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from marlab.market.logs.tracker import read_tracker, write_tracker
from marlab.market.logs.worldfile import read_world, write_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions
from tests.market.logs.test_tracker import assert_same
from tests.market.tracker_example import Document, own

pytest.importorskip("scml")
from marlab.market.simulator.record import record_world
from marlab.market.simulator.worlds import WorldSpec

TINY = Path(__file__).parents[2] / "golden" / "market" / "tiny_world.parquet"
NUMBERS = {"negotiation", "seq"}
"""Columns that only number things inside their file."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> WorldLog:
    """Twelve days, three levels, agents that decide jointly and agents that do not."""
    kinds = ("SyncRandomStdAgent", "GreedyStdAgent", "RandomStdAgent")
    spec = WorldSpec("tracked", 3, 5, 12, (0, 0, 0, 1, 1, 1, 2, 2, 2), kinds * 3, (True,) * 9)
    path = tmp_path_factory.mktemp("world") / "tracked.parquet"
    write_world(path, record_world(spec))
    return read_world(path)


def test_an_exported_world_reads_back_to_the_same_logs(world: WorldLog, tmp_path: Path) -> None:
    decisions = 0
    for log in world.tracked():
        assert_same(read_tracker(write_tracker(log, tmp_path)), log)
        decisions += len(log.decisions["seq"])
    assert decisions > 500 and len(list(tmp_path.iterdir())) == 9


def as_first_trackers_wrote_it(document: Document) -> Document:
    """The answers of a joint decision before its actions; no call, no relative time, no mechanism in outcomes."""
    entries: list[Document] = []
    answers: list[Document] = []  # of the decision whose action comes next
    together: tuple[list[Document], list[Document]] = ([], [])  # answers and actions of one call
    for entry in [*document["entries"], {"event": "the end"}]:
        action = entry["event"] == "aop_action"
        if entry["event"] in ("offer_received", "offer_made", "accept", "reject"):
            answers.append(entry)
            continue
        if not action or (together[1] and together[1][0]["data"]["call"] != entry["data"]["call"]):
            entries += together[0] + together[1]
            together = ([], [])
        together[0].extend(answers)
        answers = []
        (together[1] if action else entries).append(entry)
    for entry in (entries := entries[:-1]):
        for key in ("relative_time", "received", "call", "rounds", "ended_by", "caller"):
            entry["data"].pop(key, None)
        if entry["event"] in ("success", "failure", "signed"):
            entry["data"].pop("mechanism_id", None)
        if entry["event"] == "failure":
            entry["data"]["reason"] = "negotiation_ended_without_agreement"
    return document | {"entries": entries}


def test_what_first_trackers_left_out_is_found_again(tmp_path: Path) -> None:
    """Decisions, outcomes and contracts of a real world do not suffer; joint decisions of joint deciders neither."""
    for log in read_world(TINY).tracked():
        told = as_first_trackers_wrote_it(json.loads(write_tracker(log, tmp_path).read_text()))
        (tmp_path / "agent_x.json").write_text(json.dumps(told))
        read, expected = read_tracker(tmp_path / "agent_x.json"), own(log)
        assert {"relative_time", "call", "mechanism_id of an outcome"} <= read.missing.keys()
        for name in ("negotiations", "decisions", "contracts"):
            columns = getattr(expected, name).items()
            for column, values in columns:
                if column not in ("seq", "call"):
                    np.testing.assert_array_equal(getattr(read, name)[column], values, err_msg=f"{name}.{column}")
        if log.agent_type == "SyncRandomStdAgent":
            first, second = (x.decisions["call"] for x in (read, expected))
            np.testing.assert_array_equal(first[:, None] == first, second[:, None] == second)


GUIDE = SampleOptions()
ECONOMIC = SampleOptions(L1Options(rules="economic"), FeatureOptions(channels=12, extra=True))


@pytest.mark.parametrize("options", [GUIDE, ECONOMIC], ids=["guide", "economic"])
def test_an_exported_world_makes_the_same_samples(world: WorldLog, tmp_path: Path, options: SampleOptions) -> None:
    for log in world.tracked():
        expected, found = (extract(x, options) for x in (log, read_tracker(write_tracker(log, tmp_path))))
        assert expected.logs == found.logs
        assert expected.tables.keys() == found.tables.keys()
        for table, columns in expected.tables.items():
            assert columns.keys() == found.tables[table].keys()
            for name in columns.keys() - NUMBERS:
                np.testing.assert_array_equal(found.tables[table][name], columns[name], err_msg=f"{table}.{name}")
