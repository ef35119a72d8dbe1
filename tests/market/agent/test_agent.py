"""LitaAgentHRL in small real worlds: no exception, no illegal offer, the same game whoever is asked first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.market.logs.worldlog import NONE, REJECT, WorldLog
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import TemporalDecisionTransformer
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import save_network
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options
from marlab.market.rules.partners import EXTRA_SIZE, PARTNER_SIZE

pytest.importorskip("scml")
from negmas.sao import ResponseType

from marlab.market.agent.agent import LitaAgentHRL
from marlab.market.agent.decide import RuleW
from marlab.market.agent.layers import load_layers
from marlab.market.agent.settings import AgentSettings
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.options import SampleOptions
from marlab.market.simulator.awi import without_bankrupt
from marlab.market.simulator.experts import find_agent
from marlab.market.simulator.record import record_world
from marlab.market.simulator.worlds import WorldSpec
from tests.market import agent_variants, decision_golden
from tests.market.days import a_day

DAYS = 11
Game = tuple[WorldLog, dict[str, LitaAgentHRL]]
_played: dict[tuple[str, int], Game] = {}


def game_of(variant: str, seed: int = 3, days: int = DAYS) -> Game:
    """A variant on each of three levels among built-in agents, played once per test session."""
    if (variant, seed) not in _played:
        me = f"{agent_variants.__name__}:{variant}.LitaAgentHRL"
        agents = (me, "RandomStdAgent", me, "SyncRandomStdAgent", me, "RandomStdAgent")
        cls: Any = find_agent(me)
        cls.seats.clear()
        spec = WorldSpec("agent", seed, seed, days, (0, 0, 1, 1, 2, 2), agents, tuple(a == me for a in agents))
        _played[variant, seed] = record_world(spec), dict(cls.seats)
    return _played[variant, seed]


def contracts(game: Game) -> list[tuple[int, ...]]:
    columns = ("day", "seller", "buyer", "quantity", "price", "delivery", "negotiation")
    table = game[0].tables["contracts"]
    return sorted(zip(*(table[name].tolist() for name in columns)))


@pytest.mark.parametrize("variant", ["RuleW", "Thumb", "Untrained", "PureL1", "Habits"])
def test_a_world_without_exception_illegal_offer_or_unsafe_action(variant: str) -> None:
    assert_safe(game_of(variant))


@pytest.mark.long
@pytest.mark.parametrize("variant", ["RuleW", "Networks", "Habits"])
def test_twenty_worlds_without_exception_illegal_offer_or_unsafe_action(variant: str) -> None:
    for seed in range(20, 40):
        assert_safe(game_of(variant, seed))
        del _played[variant, seed]


def assert_safe(game: Game) -> None:
    """No exception, nothing unsafe, and every offer within what the negotiation allows."""
    log, seats = game
    assert len(seats) == 3 and log.meta["failures"] == {} and log.meta["days_played"] == DAYS
    assert all(agent["exceptions"] == 0 for agent in log.agents if agent["type"] == "LitaAgentHRL")
    for agent in seats.values():
        assert agent.counts["exceptions"] == agent.counts["unsafe"] == 0
        assert agent.counts["offers"] > 0 and len(agent.seconds) > 0
    for one in log.tracked():
        made = one.decisions["op"] == REJECT
        table, n = one.negotiations, one.decisions["negotiation"][made]
        for issue in ("quantity", "day", "price"):
            value = one.decisions[issue][made]
            assert (value >= table[f"{issue}_min"][n]).all() and (value <= table[f"{issue}_max"][n]).all()
    signed = [row for row in contracts((log, seats)) if row[-1] != NONE]
    assert signed


def test_the_log_tells_what_else_rule_w_could_have_done() -> None:
    """Taken offers are worth what waiting is, and every round tells the caps it was decided under."""
    sales, known = 0, 0
    for agent in game_of("RuleW")[1].values():
        caps: dict[str, Any] = {}
        for line in agent.log.lines:
            caps = line if line["kind"] == "round" else caps
            if line["kind"] != "decision" or "alternatives" not in line:
                continue
            take, wait = line["alternatives"]["take"], line["alternatives"]["wait"]
            assert line["selling"] and (take is None) == (line["received"] is None) and caps["day"] == line["day"]
            known += wait is not None
            if line["op"] == "accept":
                quantity, when, _ = line["received"]
                assert (wait is None or take >= wait - 0.01) and caps["sell_cap"][when - line["day"]] >= quantity
                sales += 1
    assert sales > 5 and known > 5


def write_networks(folder: Path) -> None:
    """Networks of every layer that have learnt nonsense, with all further features."""
    data = {"l1": to_dict(L1Options(rules="economic")), "features": to_dict(FeatureOptions(extra=True))}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        l2 = HorizonManagerPPO(d_static=12 + EXTRA_SIZE)
        l3 = TemporalDecisionTransformer(d_model=16, n_layers=1, d_partner=PARTNER_SIZE)
        # operators stay with the rule: nonsense there would soon end every negotiation
        for head, spread in ((l3.time_head, 1.0), (l3.q_head[-1], 0.05), (l3.p_head[-1], 0.05)):
            torch.nn.init.normal_(head.weight, std=spread)  # type: ignore[arg-type]
        for name, network in (("l2_bc", l2), ("l3_bc", l3), ("l4_distill", GlobalCoordinator())):
            save_network(folder / f"{name}.pt", network, data=data)


def test_networks_from_files_play_and_stay_safe(tmp_path: Path) -> None:
    write_networks(tmp_path)
    paths = {f"{layer}_model_path": tmp_path for layer in ("l2", "l3", "l4")}
    agent_variants.Learnt.LitaAgentHRL.given = {"mode": "neural", **paths}
    log, seats = game_of("Learnt")
    assert all(agent["exceptions"] == 0 for agent in log.agents if agent["type"] == "LitaAgentHRL")
    residuals, days = set(), set()
    for agent in seats.values():
        assert agent.layers.features.extra and agent.layers.l2.mode == "neural"
        assert agent.counts["exceptions"] == agent.counts["unsafe"] == 0
        lines = [line for line in agent.log.lines if line["kind"] == "decision"]
        assert all(
            "residual" in line or "rule" in line for line in lines
        )  # sales by the network, purchases by the rule
        residuals |= {tuple(line["residual"]) for line in lines if "residual" in line}
        days |= {line["offer"][1] - line["day"] for line in lines if line["offer"]}
    assert len(residuals) > 20 and len(days) > 2
    assert sum(agent.counts["offers"] for agent in seats.values()) > 20


def test_an_untrained_network_plays_pure_l1() -> None:
    for seed in (3, 4):
        plain, fresh = game_of("PureL1", seed), game_of("Untrained", seed)
        assert [a["id"] for a in plain[0].agents] == [a["id"] for a in fresh[0].agents]
        assert contracts(plain) == contracts(fresh)
        assert sum(agent.counts["signed"] for agent in fresh[1].values()) > 5
        weights = set()
        for one, other in zip(plain[1].values(), fresh[1].values()):
            assert _decisions(one) == _decisions(other)
            weights |= {line["alpha"] for line in other.log.lines if line["kind"] == "decision"}
        assert len(weights) > 3  # the untrained L4 orders threads, and both follow it


def _decisions(agent: LitaAgentHRL) -> list[tuple[Any, ...]]:
    lines = [line for line in agent.log.lines if line["kind"] == "decision"]
    return [(line["day"], line["partner"], line["round"], line["op"], line["offer"], line["alpha"]) for line in lines]


def test_the_order_of_calls_does_not_matter() -> None:
    plain, split = game_of("RuleW"), game_of("Split")
    assert sum(agent.counts["split"] for agent in split[1].values()) > 10
    assert contracts(plain) == contracts(split)
    for one, other in zip(plain[1].values(), split[1].values()):
        assert _decisions(one) == _decisions(other)


def test_a_middle_factory_with_its_opening_balance_offers_to_buy() -> None:
    for variant in ("RuleW", "PureL1", "Thumb"):
        log, seats = game_of(variant)
        middle = next(seats[one.agent_id] for one in log.tracked() if one.days.can_buy[0] and one.days.can_sell[0])
        morning = next(line for line in middle.log.lines if line["kind"] == "day")
        assert morning["budget"] > 0
        first_day = [line for line in middle.log.lines if line["kind"] == "decision" and line["day"] == 0]
        assert any(line["op"] == "offer" and not line["selling"] for line in first_day)


def test_what_the_agent_used_comes_out_of_its_log() -> None:
    """Baselines of every decision and weights of every answer, recomputed from the recorded world."""
    log, seats = game_of("RuleW")
    compared = 0
    for one in log.tracked():
        agent = seats[one.agent_id]
        options = SampleOptions(l1=agent.layers.l1, features=agent.layers.features)
        found = extract(one, options)
        days = [line for line in agent.log.lines if line["kind"] == "day"]
        found = with_goals(found, np.array([line["goal"] for line in days]))
        told = {
            (line["day"], line["partner"], line["round"], line["received"] is not None): line
            for line in agent.log.lines
            if line["kind"] == "decision"
        }
        table = one.negotiations
        for i in range(found.rows("micro")):
            n = found.micro["negotiation"][i]
            partner = one.names[table["buyer"][n] if table["seller"][n] == one.index else table["seller"][n]]
            line = told[int(table["day"][n]), partner, int(found.micro["round"][i]), bool(found.micro["aux"][i][5])]
            np.testing.assert_allclose(found.micro["baseline"][i], line["baseline"], rtol=1e-6, atol=1e-6)
            if line["received"] is not None:  # threads without a first proposal are not in the log
                np.testing.assert_allclose(found.micro["alpha"][i], line["alpha"], rtol=1e-4, atol=1e-6)
            compared += 1
    assert compared > 50


def test_exceptions_in_negotiations_fall_back_to_pure_l1() -> None:
    log, seats = game_of("Stumbling")
    assert all(agent["exceptions"] == 0 for agent in log.agents)  # none reached the world
    for agent in seats.values():
        lines = agent.log.lines
        caught = [line for line in lines if line["kind"] == "exception"]
        assert agent.counts["exceptions"] == len(caught) > 0
        assert {line["day"] for line in caught} == {1, 2} and "did not expect" in caught[0]["traceback"]
    fallen_back = [
        line for agent in seats.values() for line in agent.log.lines if line["kind"] == "decision" and line["day"] == 1
    ]
    assert fallen_back and all("rule" not in line for line in fallen_back)
    assert any(line["op"] == "offer" for line in fallen_back)
    assert not any(line["kind"] == "decision" and line["day"] == 2 for a in seats.values() for line in a.log.lines)


def test_an_agent_that_cannot_see_its_balance_raises_and_does_not_trade() -> None:
    with pytest.raises(AttributeError, match="current_balance"):
        game_of("Blind")
    for agent in agent_variants.Blind.LitaAgentHRL.seats.values():
        assert {line["day"] for line in agent.log.lines if line["kind"] == "day"} == {0}  # there was no second morning


def test_after_a_failed_morning_negotiations_end() -> None:
    agent = LitaAgentHRL(mode="heuristic")
    answers = agent.counter_all({"p": (3, 1, 10)}, {"p": None})
    assert answers["p"].response is ResponseType.END_NEGOTIATION and answers["p"].outcome is None
    assert agent.counts["exceptions"] == 0


@pytest.mark.parametrize("variant", list(decision_golden.WORLDS))
def test_every_decision_is_the_one_of_the_golden_file(variant: str) -> None:
    expected = [line for line in decision_golden.golden() if line.startswith(f"{variant} ")]
    found = decision_golden.played(variant)
    if variant == "Networks":
        assert len(set(found) ^ set(expected)) <= 2 * decision_golden.ROUNDED * len(expected)
    else:
        assert found == expected


def test_the_log_explains_every_decision() -> None:
    _, seats = game_of("Untrained")
    for agent in seats.values():
        lines = [line for line in agent.log.lines if line["kind"] == "decision"]
        assert len(lines) == agent.counts["decisions"]
        for line in lines:
            assert {"baseline", "residual", "alpha", "clip", "op_probabilities", "op", "offer"} <= line.keys()
            assert sum(line["op_probabilities"]) == pytest.approx(1, abs=1e-4)
            assert line["residual"] == [0, 0]
            assert line["op"] != "end" or line["clip"]


@pytest.mark.parametrize(
    ("given", "message"),
    [({"is_perishable": True}, "Standard"), ({"allow_zero_quantity": True}, "Standard"), ({"horizon": 50}, "50 days")],
)
def test_another_game_is_refused(given: dict[str, Any], message: str) -> None:
    agent = LitaAgentHRL(mode="heuristic")
    agent._awi = SimpleNamespace(**{"is_perishable": False, "allow_zero_quantity": False, "horizon": 10, **given})
    with pytest.raises(RuntimeError, match=message):
        agent.init()


def test_a_morning_that_cannot_be_is_refused() -> None:
    _, seats = game_of("RuleW")
    agent = next(iter(seats.values()))
    day, state = agent._last_day, agent._morning.state
    with pytest.raises(RuntimeError, match=f"day {day} came after"):
        agent._check(state, day)
    with pytest.raises(RuntimeError, match="no number for balance"):
        agent._check(state.replace(balance=np.array(np.nan)), day + 1)
    with pytest.raises(RuntimeError, match="offer the days"):
        agent._check(state, day + 1)


def test_sales_to_the_bankrupt_take_no_room() -> None:
    awi = SimpleNamespace(
        my_consumers=["gone", "here"],
        is_bankrupt=lambda name: name == "gone",
        sales={"gone": 2, "here": 1},
        sales_cost={"gone": 40, "here": 20},
        future_sales={12: {"gone": 7, "here": 3}, 13: {"here": 4}},
        future_sales_cost={12: {"gone": 140, "here": 60}, 13: {"here": 80}},
    )
    sold: Any = np.zeros(41)
    sold[[0, 2, 3]] = 3, 10, 4
    left = without_bankrupt(awi, a_day(q_out=sold, receive=20 * sold))
    assert left.q_out[:4].tolist() == [1, 0, 3, 4] and left.receive[:4].tolist() == [20, 0, 60, 80]


def test_a_failed_start_is_told_on_the_first_day(tmp_path: Path) -> None:
    agent = LitaAgentHRL(mode="neural", l2_model_path=tmp_path)
    agent._awi = SimpleNamespace(is_perishable=False, allow_zero_quantity=False, horizon=10)
    for call in (agent.init, agent.before_step):  # the simulator only counts what `init` raises
        with pytest.raises(UserError, match=r"L2 .*"):
            call()


def test_the_class_alone_is_enough() -> None:
    agent = find_agent("marlab.market.agent:LitaAgentHRL")()
    assert isinstance(agent, LitaAgentHRL) and agent.settings == AgentSettings()
    assert load_layers(agent.settings).l1.rules == "economic" and not agent.settings.is_neural
    decider = load_layers(agent.settings).l3
    assert isinstance(decider, RuleW) and decider._learnt is not None  # what it learnt, and not the rule as written


RULES_ONLY = """
import sys
from marlab.market.agent.agent import LitaAgentHRL
from marlab.market.agent.layers import load_layers
load_layers(LitaAgentHRL(mode="heuristic").settings)
print([name for name in ("torch", "shtab") if name in sys.modules])
"""


def test_rules_alone_import_no_torch() -> None:
    found = subprocess.run([sys.executable, "-c", RULES_ONLY], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_weights_that_come_with_the_package_play() -> None:
    layers = load_layers(AgentSettings(mode="neural"))
    assert layers.l1.rules == "economic" and layers.features.extra and layers.l2.mode == "neural"


def test_goal_zero_tells_l3_and_l4_no_goal() -> None:
    agent_variants.Learnt.LitaAgentHRL.given = {**agent_variants.NETWORKS, "goal_zero": True}
    _, seats = game_of("Learnt", seed=9)
    mornings = [line for agent in seats.values() for line in agent.log.lines if line["kind"] == "day"]
    assert mornings and not any(np.any(line["goal"]) for line in mornings)


def test_draws_are_those_of_the_game() -> None:
    """decode=sample: the same world draws the same, another world something else."""
    agent_variants.Learnt.LitaAgentHRL.given = {**agent_variants.NETWORKS, "decode": "sample"}
    games = []
    for seed in (21, 22):
        _, seats = game_of("Learnt", seed=seed, days=4)
        games.append([agent._morning.game for agent in seats.values()])
    _played.pop(("Learnt", 21))
    _, seats = game_of("Learnt", seed=21, days=4)
    assert [agent._morning.game for agent in seats.values()] == games[0]
    assert len({*games[0], *games[1]}) == 6
