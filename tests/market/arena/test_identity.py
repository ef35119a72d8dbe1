"""Two agents of one name are told apart by their code and their weights."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from marlab.market.arena import identity
from marlab.market.arena.identity import agent_identity, world_identity
from tests.reach import not_digested

OWN = "from scml.std.agents import RandomStdAgent\n\n\nclass MyAgent(RandomStdAgent):\n    pass\n"


def test_code_and_weights_are_part_of_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source, weights = tmp_path / "my_agents_of_the_test.py", tmp_path / "l3.pt"
    source.write_text(OWN)
    weights.write_bytes(b"one")
    importlib.invalidate_caches()
    plain, with_file = "my_agents_of_the_test:MyAgent", f"my_agents_of_the_test:MyAgent(l3_model_path={weights})"
    in_folder = f"my_agents_of_the_test:MyAgent(l3_model_path={tmp_path})"
    first = [agent_identity(name) for name in (plain, with_file, in_folder)]
    assert first == [agent_identity(name) for name in (plain, with_file, in_folder)] and len(set(first)) == 3
    weights.write_bytes(b"two")
    second = [agent_identity(name) for name in (plain, with_file, in_folder)]
    assert [a == b for a, b in zip(first, second)] == [True, False, False]
    source.write_text(OWN.replace("pass", "speed = 2"))
    assert agent_identity(plain) != first[0]


def test_what_was_learnt_is_part_of_an_agent_that_plays_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped, run = tmp_path / "habits.json", tmp_path / "run"
    mine = run / "checkpoints" / "habits.json"
    mine.parent.mkdir(parents=True)
    monkeypatch.setattr("marlab.market.agent.layers.SHIPPED", tmp_path)
    names = "LitaAgentHRL(mode=learned)", f"LitaAgentHRL(mode=learned, weights={run})", "LitaAgentHRL(mode=heuristic)"
    seen = []
    for first, second in (("a", "b"), ("c", "b"), ("c", "d")):
        shipped.write_text(first)
        mine.write_text(second)
        seen.append([agent_identity(name) for name in names])
    package, own, rule = zip(*seen)
    assert package[0] != package[1] == package[2] and own[0] == own[1] != own[2] and len(set(rule)) == 1


def test_a_tournament_goes_on_with_another_numpy_or_torch_but_not_with_another_simulator() -> None:
    assert set(identity.LIBRARIES) == {"scml", "negmas"}


def test_a_world_is_known_by_everybody_in_it() -> None:
    one, two = ("RandomStdAgent", "GreedyStdAgent"), ("RandomStdAgent", "SyncRandomStdAgent")
    assert world_identity(one) == world_identity((*reversed(one), one[0])) != world_identity(two)


def test_the_code_that_plays_is_all_in_its_identity() -> None:
    plans = (
        "marlab.lab",
        "marlab.market.arena.plan",
        "marlab.market.collect.plan",
    )
    assert not_digested(["marlab.market.arena.world"], identity.CODE, plans) == set()
