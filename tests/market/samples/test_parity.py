"""Play and log agree: whatever an agent computed while it played comes out of its log again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from marlab.market.logs.daystate import DayState, stack
from marlab.market.logs.worldfile import read_world, write_world
from marlab.market.logs.worldlog import ACCEPT, NONE, REJECT, AgentLog, WorldLog
from marlab.market.rules import goals, l1
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options

pytest.importorskip("scml")
from marlab.market.samples import extract as samples
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.options import SampleOptions
from marlab.market.simulator.record import record_world
from marlab.market.simulator.worlds import WorldSpec
from tests.market.parity_agent import ParityAgent, Played

ME = f"{ParityAgent.__module__}:ParityAgent"
RULES = {
    "guide": (L1Options(), FeatureOptions(extra=True)),
    "economic": (L1Options(rules="economic"), FeatureOptions(extra=True, channels=12)),
}
Game = tuple[WorldLog, dict[str, Played], SampleOptions]


@pytest.fixture(scope="module", params=list(RULES))
def game(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Game:
    """Three levels, the agent on each of them, built-in neighbours that counter for many rounds."""
    l1_options, feature_options = RULES[request.param]
    ParityAgent.l1_options, ParityAgent.feature_options = l1_options, feature_options
    ParityAgent.played.clear()
    agents = (ME, "GreedyStdAgent", "RandomStdAgent") * 2 + (ME, "SyncRandomStdAgent", "GreedyStdAgent")
    tracked = tuple(name == ME for name in agents)
    path = tmp_path_factory.mktemp("parity") / "world.parquet"
    write_world(path, record_world(WorldSpec("parity", 3, 6, 13, (0, 0, 0, 1, 1, 1, 2, 2, 2), agents, tracked)))
    return read_world(path), dict(ParityAgent.played), SampleOptions(l1=l1_options, features=feature_options)


def logs_of(game: Game) -> list[tuple[AgentLog, Played]]:
    return [(log, game[1][log.agent_id]) for log in game[0].tracked()]


def test_the_game_is_worth_comparing(game: Game) -> None:
    assert game[0].meta["failures"] == {}
    assert all(agent["exceptions"] == 0 for agent in game[0].agents)
    signed = rounds = 0
    for log, _ in logs_of(game):
        signed += int((log.contracts["negotiation"] != NONE).sum())
        rounds = max(rounds, int(log.decisions["round"].max()))
        assert (log.decisions["op"] == REJECT).sum() > 20
    assert signed > 15 and rounds >= 5
    assert any((log.decisions["op"] == ACCEPT).any() for log, _ in logs_of(game))


def test_mornings_come_out_of_the_log_as_they_were_read(game: Game) -> None:
    for log, played in logs_of(game):
        seen = stack(played.states)
        for name, logged, read in zip(DayState._fields, log.days, seen):
            np.testing.assert_allclose(logged, read, rtol=0, atol=1e-9, err_msg=name)


def test_l1_of_every_day_comes_out_of_the_log(game: Game) -> None:
    options = game[2].l1
    for log, played in logs_of(game):
        caps = l1.caps(log.days, options)
        for i, morning in enumerate(played.mornings):
            flat = np.concatenate([caps.buy[i], caps.sell[i], [caps.budget[i]]])
            np.testing.assert_allclose(flat, morning["caps"], rtol=0, atol=1e-6)
        for side, selling in (("buy", False), ("sell", True)):
            base = np.stack(l1.baseline(log.days, caps, selling, options), -1)
            mask = l1.time_mask(caps.of(selling), l1.issue_of(log.days, selling))
            for i, morning in enumerate(played.mornings):
                np.testing.assert_allclose(base[i], morning[f"baseline_{side}"], rtol=0, atol=1e-6)
                np.testing.assert_array_equal(mask[i], morning[f"mask_{side}"])


def test_what_l2_sees_comes_out_of_the_log(game: Game) -> None:
    for log, played in logs_of(game):
        macro = extract(log, game[2]).macro
        assert len(macro["day"]) == len(played.mornings)
        for name in ("x_static", "x_temporal", "extra"):
            online = np.stack([morning[name] for morning in played.mornings])
            np.testing.assert_allclose(macro[name], online, rtol=1e-6, atol=1e-6, err_msg=name)
            assert np.ptp(online) > 0


def test_what_l3_and_l4_see_comes_out_of_the_log(game: Game) -> None:
    for log, played in logs_of(game):
        found = with_goals(extract(log, game[2]), goals.heuristic_goal(log.days))
        micro, overall = found.micro, samples.global_features(found)
        rows = found.tables["offers"]["row"]
        table = log.negotiations
        seen = set()
        for i in range(found.rows("micro")):
            n = micro["negotiation"][i]
            partner = table["buyer"][n] if table["seller"][n] == log.index else table["seller"][n]
            key = int(table["day"][n]), log.names[partner], int(micro["round"][i]), bool(micro["aux"][i][5])
            online = played.threads[key]
            seen.add(key)
            history = rows[micro["history"][i] : micro["history"][i] + micro["history_length"][i]]
            offline = {name: micro[name][i] for name in online if name not in ("global", "history")}
            offline |= {"global": overall[micro["call"][i]], "history": history[-20:]}
            for name, value in online.items():
                np.testing.assert_allclose(offline[name], value, rtol=1e-6, atol=1e-6, err_msg=f"{key} {name}")
        assert seen == set(played.threads)  # every decision of play, and nothing else


def test_what_happens_in_a_day_does_not_change_what_l2_saw_that_morning(game: Game) -> None:
    def late(log: AgentLog) -> np.ndarray:
        """[13] own offers of each day for a later delivery: the next morning still knows them."""
        made = log.negotiations["day"][log.decisions["negotiation"]]
        return np.bincount(made[(log.decisions["op"] == REJECT) & (log.decisions["day"] > made)], minlength=13)[:-1]

    log = max((log for log, _ in logs_of(game)), key=lambda log: late(log).max())
    day = int(late(log).argmax())
    days = log.negotiations["day"][log.decisions["negotiation"]]
    today = days == day
    signed = (log.contracts["day"] == day) & (log.contracts["negotiation"] != NONE)
    decisions = {**log.decisions, "quantity": np.where(today, log.decisions["quantity"] * 2, log.decisions["quantity"])}
    contracts = {**log.contracts, "price": log.contracts["price"] + 3 * signed}
    before = extract(log, game[2]).macro
    after = extract(replace(log, decisions=decisions, contracts=contracts), game[2]).macro
    for name in ("x_static", "x_temporal", "extra", "x_role"):
        np.testing.assert_array_equal(before[name][: day + 1], after[name][: day + 1], err_msg=name)
    assert (before["x_temporal"][day + 1] != after["x_temporal"][day + 1]).any()  # the next morning does know
    assert (before["label"][day] != after["label"][day]).any()


def test_the_morning_is_written_before_the_first_decision_of_its_day(game: Game) -> None:
    for log, _ in logs_of(game):
        negotiated = log.contracts["negotiation"] != NONE
        assert log.days.day.tolist() == list(range(13))
        # the morning knows what was signed before the day, and nothing of the day itself
        for i, day in enumerate(log.days.day):
            for schedule, mine in ((log.days.q_in, "buyer"), (log.days.q_out, "seller")):
                earlier = negotiated & (log.contracts["day"] < day) & (log.contracts[mine] == log.index)
                due = log.contracts["delivery"][earlier] - int(day)
                quantity = log.contracts["quantity"][earlier]
                expected = np.bincount(due[due >= 0], quantity[due >= 0], minlength=41)
                np.testing.assert_array_equal(schedule[i], expected)


def test_a_middle_factory_with_its_opening_balance_offers_to_buy(game: Game) -> None:
    log, played = next((log, played) for log, played in logs_of(game) if log.days.can_buy[0] and log.days.can_sell[0])
    assert log.days.balance[0] == log.days.initial_balance[0]
    assert played.mornings[0]["caps"][-1] > 0
    n = log.decisions["negotiation"]
    buying = log.negotiations["buyer"][n] == log.index
    first_day = log.negotiations["day"][n] == 0
    assert (buying & first_day & (log.decisions["op"] == REJECT)).any()
