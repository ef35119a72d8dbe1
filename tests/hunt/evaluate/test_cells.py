"""A measurement depends on its key alone: not on its company, its place, the words it is asked for by, or threads."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from marlab.hunt.evaluate import cells
from marlab.hunt.evaluate.agents import find_agent, scripted
from marlab.hunt.evaluate.cells import Measurement, Measurer, measure_task, players_of, unique
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.scenarios import SUITE, Scenario, by_name, team
from marlab.lab.errors import UserError
from marlab.lab.runs.identity import HOUSE, sources
from tests.reach import not_digested

CONFIG = HuntEvalConfig("NS", runs=4, steps=72, window=36, layouts=3, episodes=8, device="cpu")
PLUMBING = (
    "marlab.lab",
    "marlab.hunt.data.dataset",
    "marlab.hunt.selfplay.config",
    "marlab.hunt.evaluate.command",
    "marlab.hunt.evaluate.scenarios",
)
"""Reads settings, files and names; what it says about a measurement is in the key. What computes in `lab` is digested:
networks, search, statistics, generators."""


@pytest.fixture(scope="module")
def bench() -> Measurer:
    return Measurer(CONFIG, {})


def rule_cells(bench: Measurer) -> list[Measurement]:
    players = ("NS", "RAND", "MIX(0.5)", "TFT")
    return [bench.cell(scripted(name), scenario, {}) for scenario in SUITE[6:9] for name in players]


def test_cells_of_rules_are_the_same_in_any_company(bench: Measurer) -> None:
    jobs = rule_cells(bench)
    together = dict(zip(jobs, bench.rule_scores(jobs)))
    mixed = random.Random(3).sample(jobs, len(jobs))
    for some in (mixed[:1], mixed[1:4], mixed[4:9], [mixed[9], mixed[0]]):
        assert dict(zip(some, bench.rule_scores(some))) == {job: together[job] for job in some}
    assert len({str(score["per_run"]) for score in together.values()}) > len(jobs) // 2  # and they are not all one


def test_the_order_and_the_names_of_players_do_not_matter(bench: Measurer, hop: Path) -> None:
    one, same = find_agent(f"one={hop}"), find_agent(f"other={hop}")
    here = Measurer(CONFIG, {agent.text: agent for agent in (one, same)})
    lone, turned = by_name("visit_lone_hunter"), team("2NH+NS")
    assert here.cell(one, lone, {}) == here.cell(one, turned, {}) != here.cell(one, team("2NS+NH"), {})
    among = Scenario("x", ("one", "NS", "other"))
    cast = {"one": one, "other": same}
    first, second = here.cell(one, among, cast), here.cell(same, Scenario("y", ("other", "one", "NS")), cast)
    assert here.key(first) == here.key(second) and unique(here, [first, second]) == [first]
    assert here.measure(first) == here.measure(second)  # the same player is one policy, whatever it is called


def test_a_trained_cell_is_the_same_again_after_others_and_on_more_threads(hop: Path, ppo: Path) -> None:
    planner, learner = find_agent(str(hop)), find_agent(str(ppo))
    bench = Measurer(CONFIG, {planner.text: planner, learner.text: learner})
    jobs = [bench.cell(agent, team("NH+2RAND"), {}) for agent in (planner, learner)]
    jobs += [Measurement("self-play", planner.text, 0), Measurement("self-play", learner.text, 3)]
    first = [bench.measure(job) for job in jobs]
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert [bench.measure(job) for job in reversed(jobs)] == first[::-1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert measure_task(CONFIG, jobs[0], bench.games, players_of(bench, jobs[0])) == first[0]  # as on an engine


def test_another_agent_setting_or_protocol_is_another_measurement(hop: Path, ppo: Path) -> None:
    names = (str(hop), f"{hop}?trees=1", f"{hop}?greedy=no", str(ppo), f"{ppo}:0", "NS")
    assert len({find_agent(text).identity for text in names}) == 6
    assert find_agent(str(hop)).identity == find_agent(f"other={hop}").identity  # a name changes nothing
    changes: list[dict[str, object]] = [{}, {"steps": 50}, {"seed": 3}, {"runs": 8}, {"window": 40}]
    benches = [Measurer(HuntEvalConfig(**{**vars(CONFIG), **change}), {}) for change in changes]  # type: ignore[arg-type]
    job = benches[0].cell(scripted("NS"), team("3NH"), {})
    assert len({str(bench.key(job)) for bench in benches}) == len(changes)


def test_an_agent_that_changed_is_refused(hop: Path) -> None:
    job = Measurement("self-play", str(hop), 0)
    with pytest.raises(UserError, match="changed while it was evaluated"):
        measure_task(CONFIG, job, 8, {str(hop): "another"})


def test_the_code_that_measures_is_all_in_its_identity() -> None:
    """Whatever the measuring module imports, directly or not, is digested, or is plumbing."""
    assert not_digested(["marlab.hunt.evaluate.cells"], cells.CODE, PLUMBING) == set()
    computes_in_lab = {"lab/search/search.py", "lab/ppo/nets.py", "lab/stats.py", "lab/runs/rng.py"}
    assert computes_in_lab <= {file.relative_to(HOUSE).as_posix() for file in sources(cells.CODE)}
