"""The recorder sees everything and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scml")
from marlab.market.logs.worldfile import read_world, write_world
from marlab.market.logs.worldlog import ACCEPT, AGREED, BROKEN, END, NONE, REJECT, TIMED_OUT, WorldLog
from marlab.market.simulator.awi import Reader
from marlab.market.simulator.experts import have_entrants
from marlab.market.simulator.record import RecordedWorld, Recording, record_world
from marlab.market.simulator.worlds import WorldSpec, play, playing
from tests.market import rogue_agents
from tests.market.simulator.test_worlds import contracts, small_world

needs_entrants = pytest.mark.skipif(not have_entrants(), reason="scml-agents is not installed")
ENTRANTS = ("PenguinAgent", "TakaLinkAgent", "S5s", "UltraSuperMiracleSoraFinalAgentZ", "AX", "CautiousStdAgent")


def recorded(spec: WorldSpec) -> tuple[WorldLog, Any]:
    """The log and the world itself."""
    with playing(spec, RecordedWorld) as world:
        recording = world.recording = Recording(world, spec)
        world.run()
        return recording.log(world), world


@pytest.fixture(scope="module")
def spec() -> WorldSpec:
    return small_world(levels=3, n_steps=8)


@pytest.fixture(scope="module")
def log(spec: WorldSpec) -> WorldLog:
    return record_world(spec)


@needs_entrants
def test_results_and_class_names_are_those_of_the_unrecorded_world() -> None:
    spec = small_world((*ENTRANTS, "GreedyStdAgent", "SyncRandomStdAgent"), levels=3, per_level=3, n_steps=8)
    plain = play(spec)
    log, world = recorded(spec)
    assert contracts(world) == contracts(plain)
    assert world.scores() == plain.scores()
    assert [agent["score"] for agent in log.agents] == list(plain.scores().values())
    types = [a.type_name for name, a in world.agents.items() if name in plain.scores()]
    assert types == [a.type_name for name, a in plain.agents.items() if name in plain.scores()]
    assert [agent["type"] for agent in log.agents] == [name.rpartition(":")[2] for name in spec.agents]
    assert log.meta["failures"] == {} and log.meta["unheard_offers"] == 0


def test_every_negotiation_and_offer_is_what_the_simulator_itself_saves(spec: WorldSpec, log: WorldLog) -> None:
    saved = play(spec, settings="default").saved_negotiations
    assert len(saved) == len(log.tables["negotiations"]["day"])
    names = [agent["id"] for agent in log.agents]
    ours: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
    table, offers = log.tables["negotiations"], log.tables["offers"]
    keys = [
        (int(table["day"][i]), names[table["seller"][i]], names[table["buyer"][i]]) for i in range(len(table["day"]))
    ]
    for i, number in enumerate(offers["negotiation"]):
        row = (names[offers["by"][i]], *(int(offers[name][i]) for name in ("round", "quantity", "day", "price")))
        ours.setdefault(keys[number], []).append(row)
    assert len(set(keys)) == len(keys)
    for record in saved:
        key = (record["sim_step"], record["seller"], record["buyer"])
        theirs = []
        for state in record["history"]:
            for negotiator, offer in state["new_offers"]:
                maker = (
                    record["seller"] if negotiator == record["buyer"] else record["buyer"]
                )  # named after its partner
                theirs.append((maker, state["step"], *map(int, offer)))
        assert ours.get(key, []) == theirs
        outcome = table["outcome"][keys.index(key)]
        assert outcome == (AGREED if not record["failed"] else TIMED_OUT if record["timedout"] else BROKEN)


def test_contracts_are_complete_and_joined_to_their_negotiations(spec: WorldSpec) -> None:
    log, world = recorded(spec)
    table, negotiations = log.tables["contracts"], log.tables["negotiations"]
    assert len(table["seq"]) == len(world.saved_contracts)
    own = table["negotiation"] != NONE
    at = table["negotiation"][own]
    assert sorted(at.tolist()) == np.flatnonzero(negotiations["outcome"] == AGREED).tolist()
    for name in ("day", "seller", "buyer", "product"):
        np.testing.assert_array_equal(table[name][own], negotiations[name][at])
    outside = ~own
    assert ((table["seller"][outside] == NONE) ^ (table["buyer"][outside] == NONE)).all()


def test_decisions_say_what_was_on_the_table_and_what_was_answered(log: WorldLog) -> None:
    decisions, offers, table = log.tables["decisions"], log.tables["offers"], log.tables["negotiations"]
    signed = dict(zip(log.tables["contracts"]["negotiation"].tolist(), log.tables["contracts"]["seq"].tolist()))
    accepted = 0
    for i in range(len(decisions["seq"])):
        agent, number, now = (int(decisions[name][i]) for name in ("agent", "negotiation", "round"))
        assert agent in (table["seller"][number], table["buyer"][number])
        last = now - 1 if table["caller"][number] == agent else now  # the caller moves first in a round
        theirs = (offers["negotiation"] == number) & (offers["by"] != agent) & (offers["round"] <= last)
        received = [int(decisions[f"received_{name}"][i]) for name in ("quantity", "day", "price")]
        made = [int(decisions[name][i]) for name in ("quantity", "day", "price")]
        if theirs.any():
            newest = np.flatnonzero(theirs)[-1]
            assert received == [int(offers[name][newest]) for name in ("quantity", "day", "price")]
        else:
            assert received == [NONE] * 3 and decisions["op"][i] == REJECT and now == 0
        if decisions["op"][i] == ACCEPT:
            accepted += 1
            assert made == received and signed[number] > decisions["seq"][i]
        elif decisions["op"][i] == END:
            assert made == [NONE] * 3 and table["ended_by"][number] == agent
    assert accepted == (table["outcome"] == AGREED).sum()  # everybody is tracked here


def test_every_offer_of_a_tracked_agent_was_a_decision(log: WorldLog) -> None:
    assert log.meta["unheard_offers"] == 0
    assert (np.diff(log.tables["decisions"]["seq"]) >= 0).all()
    made = (log.tables["decisions"]["op"] == REJECT).sum()
    assert made == len(log.tables["offers"]["by"]) + log.meta["invalid_offers"]


def test_days_are_complete_and_end_in_the_final_balance(spec: WorldSpec) -> None:
    log, world = recorded(spec)
    assert len(log.tables["days"]["day"]) == len(spec.agents) * spec.n_steps
    for index, agent in enumerate(log.agents):
        days = log.agent(index).days
        np.testing.assert_array_equal(days.day, np.arange(spec.n_steps))
        after = [*days.balance[1:], agent["final_balance"]]
        np.testing.assert_allclose(after, world.stats[f"balance_{agent['id']}"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(days.score, days.balance / days.initial_balance)
        np.testing.assert_array_equal(
            days.exogenous_reach[:, 0], np.cumsum((days.exogenous_in_quantity + days.exogenous_out_quantity) >= 1)
        )
    assert set(log.tables["reports"]["day"].tolist()) == {0, 5}


def test_joint_decisions_share_their_call_and_single_ones_do_not(log: WorldLog) -> None:
    decisions = log.tables["decisions"]
    kinds = np.asarray([agent["type"] for agent in log.agents])[decisions["agent"]]

    def largest(kind: str) -> int:
        mine = kinds == kind
        pairs = np.stack([decisions["agent"][mine], decisions["call"][mine]])
        return int(np.unique(pairs, axis=1, return_counts=True)[1].max())

    assert largest("SyncRandomStdAgent") > 1
    assert largest("GreedyStdAgent") == largest("RandomStdAgent") == 1


def test_an_agent_that_asks_itself_is_not_counted_twice() -> None:
    log = record_world(small_world((f"{rogue_agents.__name__}:Counting", "GreedyStdAgent"), n_steps=5))
    assert log.meta["unheard_offers"] == 0 and log.meta["failures"] == {}


def test_only_tracked_agents_are_written_down() -> None:
    spec = small_world(tracked=(True, False, False, False, True, False))
    log = record_world(spec)
    assert set(log.tables["decisions"]["agent"].tolist()) == {0, 4}
    assert set(log.tables["days"]["agent"].tolist()) == {0, 4}
    assert set(log.tables["offers"]["by"].tolist()) > {0, 4}  # what others offered belongs to the world
    assert [told.agent_id for told in log.tracked()] == [log.agents[0]["id"], log.agents[4]["id"]]


def test_a_failure_of_the_recorder_is_counted_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = small_world()
    plain = play(spec)

    def broken(self: Reader, awi: Any, horizon: int) -> Any:
        raise KeyError("no such attribute")

    monkeypatch.setattr(Reader, "values", broken)
    log, world = recorded(spec)
    assert world.scores() == plain.scores()
    assert sum(log.meta["failures"].values()) == spec.n_steps
    assert "KeyError" in next(iter(log.meta["failures"]))


def test_exceptions_of_agents_are_counted_and_the_world_goes_on() -> None:
    log = record_world(small_world((f"{rogue_agents.__name__}:StumblingAgent", "GreedyStdAgent")))
    assert log.meta["days_played"] == 6
    counted = [(agent["type"], agent["exceptions"] > 0) for agent in log.agents]
    assert set(counted) == {("StumblingAgent", True), ("GreedyStdAgent", False)}
    assert log.meta["failures"] == {}


def test_logs_hold_no_ids_or_times(tmp_path: Path, spec: WorldSpec, log: WorldLog) -> None:
    write_world(tmp_path / "a.parquet", log)
    write_world(tmp_path / "b.parquet", record_world(spec))
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert read_world(tmp_path / "a.parquet").meta["spec"] == spec.to_dict()
