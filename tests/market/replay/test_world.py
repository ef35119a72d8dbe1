"""The replay of a world tells what its log tells: balances, stocks and prices to rounding, and every offer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.market.arena.play import Tournament
from marlab.market.arena.world import measured_world
from marlab.market.logs.worldlog import AGREED
from marlab.market.replay.world import CONTRACT, DAYS_A_PART, NEGOTIATION, OFFER, REASON, WorldReplay
from marlab.market.simulator.worlds import WorldSpec


@pytest.fixture
def replay(logged: Path) -> WorldReplay:
    return WorldReplay(logged / "logs" / "c000-t00-w.parquet")


def test_the_summary_is_the_world_as_its_factories_saw_it(replay: WorldReplay) -> None:
    told, mornings = replay.summary(), replay.log.tables["days"]
    for day, agent, balance, stock in zip(*(mornings[n] for n in ("day", "agent", "balance", "inventory_input"))):
        assert told["balance"][agent][int(day)] == pytest.approx(balance, abs=0.006)
        if day:
            assert told["flows"]["stock"][agent][int(day) - 1] == stock
    prices = replay.log.tables["prices"]
    for day, product, price in zip(prices["day"], prices["product"], prices["price"]):
        assert told["prices"][product][day] == pytest.approx(price, abs=6e-4)
    finals = [factory["final"] for factory in told["factories"]]
    assert [balances[-1] for balances in told["balance"]] == pytest.approx(finals, abs=0.02)
    assert [factory["explained"] for factory in told["factories"]] == [True, False, True, False]
    assert [factory["type"] for factory in told["factories"]][2] == "neu"


def test_parts_hold_every_negotiation_and_offer_once(replay: WorldReplay) -> None:
    parts = [replay.part(first) for first in replay.part_names().values()]
    assert list(replay.part_names()) == ["days-0", f"days-{DAYS_A_PART}"]
    rows = [row for part in parts for row in part["negotiations"]]
    assert [number for number, _, _ in rows] == list(range(len(replay.log.tables["negotiations"]["day"])))
    assert sum(len(said) for _, _, said in rows) == len(replay.log.tables["offers"]["round"])
    signed = {
        number: told for number, *told in zip(*(replay.contracts()[n] for n in ("negotiation", "quantity", "price")))
    }
    outcome, quantity, price = NEGOTIATION.index("outcome"), OFFER.index("quantity"), OFFER.index("price")
    for number, negotiation, said in rows:
        if negotiation[outcome] == AGREED:  # what was agreed is the last offer
            assert [said[-1][quantity], said[-1][price]] == signed[number]
    assert set(replay.contracts()) == {*CONTRACT, "executed"}


def test_reasons_are_those_of_the_decision_logs(replay: WorldReplay, logged: Path) -> None:
    agents = [agent["id"] for agent in replay.log.agents]
    told = [replay.part(first)["reasons"] for first in replay.part_names().values()]
    for index, lines in replay.reasons.items():
        decisions = [line for line in lines if line["kind"] == "decision"]
        shown = [(part, row) for part in told for row in part["agents"][str(index)]["decisions"]]
        assert len(shown) == len(decisions) > 0
        for line, (part, row) in zip(decisions, shown):
            day, partner, selling, *rest = row
            known = dict(zip(REASON, rest))
            assert (day, agents[partner], bool(selling)) == (line["day"], line["partner"], line["selling"])
            assert known["offer"] == line["offer"] and known["op"] == line["op"] and known["more"] is None
            if known["why"] >= 0:
                assert part["texts"][known["why"]] == line["rule"]
            else:
                assert "rule" not in line
            if "alternatives" in line:
                assert known["money"] == list(line["alternatives"].values())
            room = part["agents"][str(index)]["caps"][known["left"]]
            assert len(room) == 3 and len(room[0]) == replay.log.meta["league_horizon"] + 1


def test_a_whole_world_is_small(replay: WorldReplay) -> None:
    """Twelve days of four factories."""
    parts = [replay.part(first) for first in replay.part_names().values()]
    assert len(json.dumps([replay.summary(), replay.contracts(), parts])) < 60_000


def test_damaged_reasons_are_one_sentence_and_a_cut_line_is_left_out(logged: Path, tmp_path: Path) -> None:
    for file in (logged / "logs").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    reasons = next(tmp_path.glob("*.jsonl.gz"))
    whole = gzip.decompress(reasons.read_bytes())
    reasons.write_bytes(gzip.compress(whole[:-20]))
    replay = WorldReplay(tmp_path / "c000-t00-w.parquet")
    assert sum(map(len, replay.reasons.values())) > 0
    reasons.write_bytes(b"\x1f\x8bnothing")
    with pytest.raises(UserError, match="not a decision log"):
        _ = WorldReplay(tmp_path / "c000-t00-w.parquet").reasons


def test_flows_add_up(replay: WorldReplay) -> None:
    """What arrives and is not used stays; what is there is never used up, as the simulator has it."""
    told = replay.summary()
    flows = {name: np.array(values) for name, values in told["flows"].items()}
    before = np.concatenate([np.zeros((len(flows["stock"]), 1)), flows["stock"][:, :-1]], 1)
    solvent = np.array([factory["bankrupt"] < 0 for factory in told["factories"]])
    arrived = flows["bought"] + flows["supplied"]
    assert (before + np.maximum(0, arrived - flows["produced"]) == flows["stock"])[solvent].all()


@pytest.mark.long
def test_two_hundred_days_of_twelve_factories_stay_below_three_megabytes(tmp_path: Path) -> None:
    """All that the page of a large world loads; a quarter of its factories say why they decide."""
    lita = "marlab.market.agent:LitaAgentHRL(mode=heuristic)"
    others = ("GreedyStdAgent", "SyncRandomStdAgent", "RandomStdAgent")
    agents = tuple(name for _ in range(3) for name in (lita, *others))
    spec = WorldSpec("big", 5, 6, 200, tuple(level for level in range(3) for _ in range(4)), agents, (False,) * 12)
    Tournament(tmp_path).add(measured_world(spec, keep_logs=True))
    replay = WorldReplay(tmp_path / "logs" / "big.parquet")
    loaded = [replay.summary(), replay.contracts(), *(replay.part(first) for first in replay.part_names().values())]
    assert sum(len(json.dumps(each)) for each in loaded) < 3_000_000
