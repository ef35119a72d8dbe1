"""Agents are found by name, and a wrong name gets one helpful sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("scml")
from marlab.lab.errors import UserError
from marlab.market.simulator import experts
from marlab.market.simulator.experts import (
    address,
    builtin_agents,
    entrants,
    find_agent,
    find_player,
    full_name,
    have_entrants,
    roster,
    split_alias,
)

needs_entrants = pytest.mark.skipif(not have_entrants(), reason="scml-agents is not installed")


@needs_entrants
def test_all_entrants_of_three_years_are_found() -> None:
    assert len(entrants()) == 35
    for name in entrants():
        assert find_agent(name).__name__ == name


@needs_entrants
def test_roster_follows_the_rule() -> None:
    names = roster()
    assert len(names) == len(set(names)) and names[-2:] == ["RandomStdAgent", "SyncRandomStdAgent"]
    assert {"PenguinAgent", "AS0", "LitaAgentYR", "QuickDecisionAgent"} <= set(names)
    few = roster(max_top_2025=1, max_top_2024=0)
    assert "AS0" in few and "PenguinAgent" not in few and "AX" not in few


@pytest.mark.parametrize("name", ["RandomStdAgent", "scml.std.agents:RandomStdAgent", "scml.std.RandomStdAgent"])
def test_three_ways_to_name_a_class(name: str) -> None:
    assert address(find_agent(name)) == "scml.std.agents.rand:RandomStdAgent"


@needs_entrants
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Penguin", "did you mean PenguinAgent"),
        ("penguinagent", "did you mean PenguinAgent"),
        ("SimpleAgent", "say which one"),
        ("no_such_module:Agent", "cannot be imported"),
        (":B", "not named as module:Class"),
        (".", "not named as module:Class"),
        ("a:", "not named as module:Class"),
        ("..a.B", "not named as module:Class"),
        ("scml.std.agents:NoAgent", "has no class NoAgent"),
        ("scml.std:UNIT_PRICE", "is not a class"),
        ("pathlib:Path", "is no agent"),
        ("scml.oneshot:GreedyOneShotAgent", "is a OneShot agent"),
        ("scml.std:StdSyncAgent", "is abstract"),
        ("scml.scml2020:DecentralizingAgent", "2020 API"),
    ],
)
def test_wrong_names(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        find_agent(name)


def test_without_scml_agents_the_built_in_agents_work_and_the_way_to_penguin_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find_spec = experts.importlib.util.find_spec
    hidden = lambda name, *rest: None if name == "scml_agents" else find_spec(name, *rest)  # noqa: E731
    monkeypatch.setattr(experts.importlib.util, "find_spec", hidden)
    for cached in (experts.entrants, experts._definitions):
        cached.cache_clear()
    try:
        assert find_agent("GreedyStdAgent").__name__ == "GreedyStdAgent"
        assert roster() == ["RandomStdAgent", "SyncRandomStdAgent"]
        with pytest.raises(UserError, match="pip install --no-deps scml-agents"):
            find_agent("PenguinAgent")
    finally:
        for cached in (experts.entrants, experts._definitions):
            cached.cache_clear()
    assert "SyncRandomStdAgent" in builtin_agents()


def test_an_own_agent_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agent_of_mine.py").write_text(
        "from scml.std.agents import GreedyStdAgent\n\n\nclass Mine(GreedyStdAgent):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])  # as the installed command has it
    assert find_agent("agent_of_mine:Mine").__name__ == "Mine"


@pytest.mark.parametrize("mistake", ["1 / 0", "class A(", "raise SystemError('no')"])
def test_a_mistake_in_an_agents_module_is_told_with_its_line(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"broken_agent_{abs(hash(mistake))}"
    (tmp_path / f"{name}.py").write_text(f"x = 1\n{mistake}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=rf"{name}:A cannot be imported, its module fails with .*\."):
        find_agent(f"{name}:A")


def test_a_short_name_may_stand_before_a_player() -> None:
    cls, values = find_player("mine=RandomStdAgent(p_invalid=0.1)")
    assert cls.__name__ == "RandomStdAgent" and values == {"p_invalid": 0.1}
    assert split_alias(" b-2 = pkg.mod:Mine(x='a=b') ") == ("b-2", "pkg.mod:Mine(x='a=b')")
    assert split_alias("Mine(x=1)") == ("", "Mine(x=1)")
    assert full_name("mine=RandomStdAgent(x=1)").endswith(":RandomStdAgent(x=1)")


def test_the_agent_of_the_market_is_known_by_its_name() -> None:
    assert find_agent("LitaAgentHRL").__module__ == "marlab.market.agent.agent"
    with pytest.raises(UserError, match="did you mean LitaAgentHRL"):
        find_agent("LitaAgentHLR")
