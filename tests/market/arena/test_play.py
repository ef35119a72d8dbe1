"""Tournaments from the command line to the tables: resumable, honest about crashes, and the parts add up."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("scml")
from marlab.cli import main
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult
from marlab.lab.errors import UserError
from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.lab.verdict import texts
from marlab.market.arena import play as arena
from marlab.market.arena.plan import Arena, PlayConfig
from marlab.market.arena.play import blamed, play
from marlab.market.arena.world import measured_world
from marlab.market.logs.worldfile import read_world
from marlab.market.simulator.settlement import MONEY
from marlab.market.simulator.worlds import WorldSpec
from tests.market import arena_agents

OURS = arena_agents.__name__
REPORTING = f"{OURS}:ReportingAgent(share=0.25, word=heuristic)"
SERIAL = EngineConfig("serial")
STRENGTH = {"GreedyStdAgent": 0.3, "RandomStdAgent": 0.0, "SyncRandomStdAgent": 0.1}


def seats_config(**more: Any) -> PlayConfig:
    plain: dict[str, Any] = {
        "design": "seats", "replace": "SyncRandomStdAgent", "population": ("RandomStdAgent",), "agents": (REPORTING,),
        "shapes": ("2x1",), "days": (6, 6), "configs": 1, "trials": False,
    }  # fmt: skip
    return PlayConfig(**plain | more)


def run_to(path: Path, config: PlayConfig, **more: Any) -> dict[str, Any]:
    """The results of a tournament in `path`."""
    play(config, RunOptions(output_dir=path, **more), engine=SERIAL, quiet=True)
    return json.loads((path / "results.json").read_text())


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seats, played by two agents: four real worlds."""
    path = tmp_path_factory.mktemp("arena") / "run"
    run_to(path, seats_config())
    return path


def test_a_tournament_leaves_tables_numbers_and_figures(reference: Path) -> None:
    rows = pq.read_table(reference / "seats.parquet").to_pylist()
    assert len(rows) == 4 and {row["agent"] for row in rows} == {"SyncRandomStdAgent", REPORTING}
    for row in rows:
        parts = row["revenue"] - sum(row[name] for name in MONEY[1:])
        assert 1 + parts == pytest.approx(row["score"], abs=1e-6)
        assert row["no_trade"] <= row["captured"] + 1e-9 and row["mean_price"] <= row["issue"] + 1e-9
        assert row["cpu_s"] > 0
    results = json.loads((reference / "results.json").read_text())
    assert results["settlement_error"] < 1e-6 and results["worlds"] == 4
    assert results["comparisons"][0]["pairs"] == 2
    told = (reference / "tables.md").read_text()
    for title in (
        "Scores",
        "Against SyncRandomStdAgent",
        "Where the score",
        "What was possible",
        "downstream",
        "Conduct",
    ):
        assert f"{title}" in told
    assert all((reference / "figures" / name).stat().st_size > 10_000 for name in ("scores.png", "parts.png"))


def test_paired_worlds_have_the_same_market(reference: Path) -> None:
    records = [json.loads(file.read_text()) for file in sorted((reference / "worlds").iterdir())]
    for seats in zip(*(record["seats"] for record in records)):
        assert len({seat["opening"] for seat in seats}) == 1
        if seats[0]["position"] == "first":
            assert len({round(seat["supply"], 12) for seat in seats}) == 1


def test_what_an_agent_reports_is_in_the_table(reference: Path) -> None:
    rows = [row for row in pq.read_table(reference / "seats.parquet").to_pylist() if row["agent"] == REPORTING]
    assert sum(row["own_decisions"] for row in rows) > 0
    assert all(row["own_unsafe"] * 4 == row["own_decisions"] for row in rows)
    assert {row["ms_95"] for row in rows if row["own_decisions"]} == {2.0}
    conduct = (reference / "tables.md").read_text().partition("Conduct")[2]
    assert "25.00 %" in conduct and "2.0" in conduct


def test_a_tournament_is_drawn_again_from_its_worlds(reference: Path) -> None:
    before = read_run(reference)
    for name in ("tables.md", "results.json", "seats.parquet", "figures/scores.png"):
        (reference / name).unlink()
    run = draw(before)
    assert read_run(reference).results == before.results and (reference / "figures" / "scores.png").exists()
    assert run.verdict and run.verdict == texts(before.verdict, str(reference))


def test_a_tournament_resumes_where_it_stopped(reference: Path) -> None:
    before = {file.name: json.loads(file.read_text()) for file in (reference / "worlds").iterdir()}
    lost = sorted(before)[1]
    (reference / "worlds" / lost).unlink()
    with pytest.raises(UserError, match="--resume"):
        run_to(reference, seats_config())
    run_to(reference, seats_config(), resume=True)
    after = {file.name: json.loads(file.read_text()) for file in (reference / "worlds").iterdir()}
    assert after.keys() == before.keys()

    def without_times(record: dict[str, Any]) -> dict[str, Any]:
        seats = [{k: v for k, v in seat.items() if k != "cpu_s"} for seat in record["seats"]]
        return {**record, "seats": seats, "cpu_s": 0}

    assert without_times(after[lost]) == without_times(before[lost])


@pytest.mark.long
def test_agents_that_crash_are_left_out_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One cannot be made, one cannot begin, one ends its world later: the other two finish the tournament."""
    broken, sleepy, late = f"{OURS}:ReportingAgent", f"{OURS}:SleepyAgent", f"{OURS}:LateAgent"
    words = ["--shapes", "2x3", "--days", "6", "6", "--configs", "1", "--turns", "1", "--engine", "serial"]
    words += ["--output-dir", str(tmp_path / "run"), "--fillers", "RandomStdAgent"]
    agents = ["SyncRandomStdAgent", "RandomStdAgent", broken, sleepy, late]
    assert main(["market", "play", "--agents", *agents, *words]) == 0
    said = capsys.readouterr()
    assert "ReportingAgent is left out, the tournament goes on without it: ValueError: the word is ''" in said.err
    assert "SleepyAgent is left out" in said.err and "init raised RuntimeError: my weights are missing" in said.err
    assert "LateAgent is left out" in said.err
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert set(results["left_out"]) == {broken, sleepy, late} and results["worlds"] == 1
    assert "SleepyAgent was left out" in said.out and "score SyncRandomStdAgent" in results


# --- the loop around the worlds, with worlds that take no time ------------------------------------------------------


class FakeWorlds:
    """Stands for the engine: scores follow from the agent, the config and a little noise."""

    def __init__(self, noise: float = 0.01, fail: str = "") -> None:
        self.noise, self.fail, self.played = noise, fail, 0

    def __call__(self, function: Any, tasks: Iterable[Task], engine: Any, stop: Any = None) -> Iterator[TaskResult]:
        for task in tasks:
            self.played += 1
            spec = task.args[0]
            if self.fail and self.fail in spec["agents"]:
                error = 'Traceback:\n  File "/nowhere/else.py", line 1\nValueError: something broke'
                yield TaskResult(task.key, "raised", error=error)
                continue
            yield TaskResult(task.key, "ok", value=self.record(task.key, spec))

    def record(self, world_id: str, spec: dict[str, Any]) -> dict[str, Any]:
        rng = np.random.default_rng(spec["seed"])
        seats = []
        for place, (name, level) in enumerate(zip(spec["agents"], spec["processes"])):
            score = 1 + STRENGTH[name] + spec["market_seed"] % 7 / 10 + rng.normal(0, self.noise)
            plain = dict.fromkeys((*MONEY, "shortfall", "produced", "bought", "stock"), 0.0)
            plain |= {"no_trade": 0.5, "captured": 2.0, "mean_price": 2.1, "issue": 2.2}
            told = {"place": place, "agent": name, "level": level, "score": score, "opening": 100.0, "crashes": []}
            told |= {"position": "first" if level == 0 else "last", "downstream": "-", "bankrupt": False}
            seats.append(told | {"exceptions": 0, "cpu_s": 0.1} | plain)
        plain_world = {"world_id": world_id, "days": 50, "n_processes": 2, "settlement_error": 0.0, "cpu_s": 1.0}
        return {**plain_world, "recorder_failures": 0, "hash_seed": 0, "seats": seats}


def fake_rotation(**more: Any) -> PlayConfig:
    plain: dict[str, Any] = {"agents": tuple(STRENGTH), "shapes": ("2x2",), "configs": 4, "trials": False}
    return PlayConfig(**plain | {"fillers": ("RandomStdAgent",), "baseline": "RandomStdAgent"} | more)


def test_a_rotation_ranks_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = FakeWorlds()
    monkeypatch.setattr(arena, "run_tasks", worlds)
    results = run_to(tmp_path / "run", fake_rotation())
    assert worlds.played == 16 == results["worlds"]
    found = {c["agent"]: c for c in results["comparisons"]}
    assert found["GreedyStdAgent"]["mean"] == pytest.approx(0.3, abs=0.02)
    low, high = found["SyncRandomStdAgent"]["bootstrap"]
    assert 0.08 < low < high < 0.12 and found["SyncRandomStdAgent"]["wins"] == 1.0
    table = (tmp_path / "run" / "tables.md").read_text()
    assert table.index("| GreedyStdAgent") < table.index("| SyncRandomStdAgent") < table.index("| RandomStdAgent")


def test_worlds_of_other_code_are_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    worlds = FakeWorlds()
    monkeypatch.setattr(arena, "run_tasks", worlds)
    first = run_to(tmp_path / "run", fake_rotation(configs=2))
    assert run_to(tmp_path / "run", fake_rotation(configs=2), resume=True) == first and worlds.played == 8
    monkeypatch.setattr(arena, "world_identity", lambda agents: "other" if "GreedyStdAgent" in agents else "more")
    play(fake_rotation(configs=2), RunOptions(output_dir=tmp_path / "run", resume=True), engine="serial")
    assert worlds.played == 16 and "8 worlds were played by other code or other weights" in capsys.readouterr().out


def test_play_stops_when_the_question_is_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = FakeWorlds()
    monkeypatch.setattr(arena, "run_tasks", worlds)
    results = run_to(tmp_path / "run", fake_rotation(configs=40, until_significant=True))
    assert 3 * 4 <= worlds.played <= 8 * 4 and len(results["complete_configs"]) * 4 == worlds.played
    assert "Decided after" in results["notes"][0] and "any-time interval" in (tmp_path / "run/tables.md").read_text()
    monkeypatch.setattr(arena, "run_tasks", FakeWorlds(noise=5.0))
    results = run_to(tmp_path / "other", fake_rotation(until_significant=True))
    assert "Not decided after 4 configs" in results["notes"][0]


def test_a_config_with_a_failed_world_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = PlayConfig(
        design="seats", replace="RandomStdAgent", agents=("GreedyStdAgent",), population=(), shapes=("2x1",),
        fillers=("RandomStdAgent", "SyncRandomStdAgent"), configs=6, trials=False,
    )  # fmt: skip
    hit = {n for n in range(6) for game in Arena(config).games(n) if "SyncRandomStdAgent" in game.spec.agents}
    monkeypatch.setattr(arena, "run_tasks", FakeWorlds(fail="SyncRandomStdAgent"))
    assert 0 < len(hit) < 6
    results = run_to(tmp_path / "run", config)
    assert set(results["complete_configs"]) == set(range(6)) - hit and results["worlds_failed"] == 4 * len(hit)
    assert "something broke" in (tmp_path / "run" / "tables.md").read_text()
    monkeypatch.setattr(arena, "run_tasks", FakeWorlds())  # what failed is played again
    assert run_to(tmp_path / "run", config, resume=True)["complete_configs"] == list(range(6))


def test_blame_falls_on_the_innermost_agent() -> None:
    import inspect

    from marlab.market.simulator.experts import find_player

    files = [inspect.getsourcefile(find_player(n)[0]) for n in (f"{OURS}:LateAgent", "SyncRandomStdAgent")]
    stack = f'  File "{files[0]}", line 1\n  File "/somewhere.py", line 2\n'
    agents = (f"{OURS}:LateAgent", "SyncRandomStdAgent")
    assert blamed(stack, agents) == f"{OURS}:LateAgent"
    assert blamed(stack + f'  File "{files[1]}", line 3\n', agents) == "SyncRandomStdAgent"
    assert blamed(stack, (*agents, f"{OURS}:SleepyAgent")) is None  # two agents of one file
    assert blamed("killed", agents) is None


def test_kept_logs_hold_the_world_and_the_reasons(tmp_path: Path) -> None:
    """The same scores with and without logs; the log is the world's, the decision log the agent's."""
    agents = ("marlab.market.agent:LitaAgentHRL(mode=heuristic)", *("SyncRandomStdAgent",) * 3)
    spec = WorldSpec("w", 3, 4, 6, (0, 0, 1, 1), agents, (False,) * 4)
    record = measured_world(spec, keep_logs=True)
    arena.Tournament(tmp_path).add(record)
    plain, kept = measured_world(spec), json.loads((tmp_path / "worlds" / "w.json").read_text())
    assert [seat["score"] for seat in kept["seats"]] == [seat["score"] for seat in plain["seats"]]
    assert "logs" not in kept and "logs" not in plain
    assert all(agent["tracked"] for agent in read_world(tmp_path / "logs" / "w.parquet").agents)
    (reasons,) = (tmp_path / "logs").glob("w.*.jsonl.gz")
    kinds = {json.loads(line)["kind"] for line in gzip.decompress(reasons.read_bytes()).splitlines()}
    assert {"start", "day", "decision"} <= kinds
