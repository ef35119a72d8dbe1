"""Only what is missing is measured, here or on an engine, with equal values."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from marlab.hunt.evaluate import work
from marlab.hunt.evaluate.agents import find_agent, scripted
from marlab.hunt.evaluate.cells import Measurement, Measurer, OutOfTime, measure_task, players_of
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.scenarios import team
from marlab.hunt.evaluate.work import SERIAL, measure_all
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.runs.measurements import Measurements

CONFIG = HuntEvalConfig("NS", runs=4, steps=40, window=36, layouts=2, episodes=4, device="cpu")


def bench_and_jobs(*texts: str) -> tuple[Measurer, list[Measurement]]:
    agents = [find_agent(text) for text in texts]
    bench = Measurer(CONFIG, {agent.text: agent for agent in agents}, games=6)
    jobs = [bench.cell(agent, team(name), {}) for agent in [*agents, scripted("EXPL")] for name in ("3NH", "NS+2NH")]
    jobs += [
        Measurement("self-play", agents[0].text, 0),
        Measurement("best response", background=("NH", "NH", "NS")),
        Measurement("beliefs"),
    ]
    return bench, jobs


def test_here_and_on_an_engine_values_are_equal(hop: Path, ppo: Path) -> None:
    bench, jobs = bench_and_jobs(str(hop), str(ppo))
    here, there = Measurements(), Measurements()
    measure_all(bench, jobs, here, SERIAL, quiet=True)
    measure_all(bench, jobs, there, EngineConfig("local", workers=2), quiet=True)
    assert [here.get(*bench.key(job)) for job in jobs] == [there.get(*bench.key(job)) for job in jobs]
    assert None not in [here.get(*bench.key(job)) for job in jobs]


def test_what_is_known_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, jobs = bench_and_jobs("NS")
    kept = Measurements()
    measure_all(bench, jobs, kept, quiet=True)
    for name in ("measure", "rule_scores"):
        monkeypatch.setattr(Measurer, name, lambda *arguments: pytest.fail("measured twice"))
    measure_all(bench, jobs, kept, quiet=True)


def test_sentences_come_back_from_an_engine(hop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, jobs = bench_and_jobs(str(hop))
    monkeypatch.setattr(work, "players_of", lambda bench, job: {str(hop): "another"})
    with pytest.raises(UserError, match=r"^The agent .* changed while it was evaluated"):
        measure_all(bench, jobs, Measurements(), EngineConfig("local", workers=1), quiet=True)


def test_a_job_is_left_in_its_middle_when_the_time_is_up(hop: Path) -> None:
    bench, [job, *_] = bench_and_jobs(str(hop))
    with pytest.raises(OutOfTime):
        measure_task(CONFIG, job, 6, players_of(bench, job), until=time.time() - 1)

    class Left(Exception):
        """Stands for the end of the run."""

    def leave() -> None:
        raise Left

    for engine in (SERIAL, EngineConfig("local", workers=1)):
        kept = Measurements(safe_point=leave)
        with pytest.raises(Left):
            measure_all(bench, [job], kept, engine, cut=leave, left_s=lambda: -1.0, quiet=True)
        assert kept.get(*bench.key(job)) is None
