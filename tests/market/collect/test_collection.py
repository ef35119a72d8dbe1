"""Collections: resumable, equal on every engine, and honest about what went wrong."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scml")
from marlab.cli import main
from marlab.lab.engine.tasks import EngineConfig, TaskResult
from marlab.lab.errors import UserError
from marlab.lab.report.draw import draw
from marlab.lab.runs.files import replacing
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.market.collect import collection as module
from marlab.market.collect.collection import collect
from marlab.market.collect.plan import CollectionPlan, MarketCollectConfig
from marlab.market.logs.worldfile import read_world
from marlab.market.simulator.record import record_task
from tests.market import rogue_agents

ROGUE = rogue_agents.__name__
PAIR = {"experts": ("SyncRandomStdAgent", "RandomStdAgent"), "configs": 1, "runs": 1, "steps": 6, "processes": (2, 2)}
TWO = EngineConfig("local", workers=2)


def settings(**changes: Any) -> MarketCollectConfig:
    return MarketCollectConfig(**PAIR | changes)


def logs_in(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / "worlds").iterdir())}


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def run_to(path: Path, config: MarketCollectConfig, **more: Any) -> Path:
    engine = more.pop("engine", TWO)
    collect(config, RunOptions(output_dir=path, **more), engine=engine, quiet=True)
    return path


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four worlds, collected without any trouble."""
    return run_to(tmp_path_factory.mktemp("reference") / "run", settings(configs=2))


def test_a_collection_holds_its_plan(reference: Path) -> None:
    plan = list(CollectionPlan(settings(configs=2)))
    assert set(logs_in(reference)) == {f"{spec.world_id}.parquet" for spec in plan}
    record = json.loads((reference / "run.json").read_text())
    rows = lines_of(reference / "worlds.jsonl")
    assert record["status"] == "finished" and record["results"]["worlds"] == len(plan) == len(rows)
    assert record["results"]["worlds_failed"] == record["results"]["unheard_offers"] == 0
    logs = {spec.world_id: read_world(reference / "worlds" / f"{spec.world_id}.parquet") for spec in plan}
    assert record["results"]["decisions"] == sum(len(log.tables["decisions"]["seq"]) for log in logs.values())
    assert all(log.meta["hash_seed"] == 0 and log.meta["days_played"] == 6 for log in logs.values())
    assert (reference / "figures" / "collection.png").stat().st_size > 10_000


def test_a_collection_is_drawn_again_from_its_logs(reference: Path) -> None:
    before = read_run(reference)
    (reference / "figures" / "collection.png").unlink()
    run = draw(before)
    assert read_run(reference).results == before.results and (reference / "figures" / "collection.png").exists()
    assert run.verdict[0].startswith("4 of 4 worlds are recorded (0 failed)") and "market samples" in run.verdict[1]


def test_a_finished_collection_is_not_played_again(reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = logs_in(reference)
    times = {file: file.stat().st_mtime_ns for file in (reference / "worlds").iterdir()}
    with pytest.raises(UserError, match="--resume"):
        run_to(reference, settings(configs=2))
    run_to(reference, settings(configs=2), resume=True)
    assert logs_in(reference) == before
    assert times == {file: file.stat().st_mtime_ns for file in (reference / "worlds").iterdir()}
    with pytest.raises(UserError, match="another config"):
        run_to(reference, settings(configs=3), resume=True)


@pytest.mark.parametrize(
    "engine", ["serial", *(pytest.param(name, marks=pytest.mark.long) for name in ("dask", "ray"))]
)
def test_every_engine_gives_identical_logs(engine: str, reference: Path, tmp_path: Path) -> None:
    if engine != "serial":
        pytest.importorskip({"dask": "distributed", "ray": "ray"}[engine])
    config = EngineConfig(engine, workers=1 if engine == "serial" else 2)  # type: ignore[arg-type]
    logs = logs_in(run_to(tmp_path / "run", settings(), engine=config))  # one of the reference's two markets
    assert len(logs) == 2 and logs.items() <= logs_in(reference).items()


@pytest.mark.long
def test_a_killed_collection_resumes_with_every_world_once(reference: Path, tmp_path: Path) -> None:
    words = "--configs 2 --runs 1 --steps 6 --processes 2 2 --engine local --workers 1 --quiet".split()
    words = ["market", "collect", "--experts", *PAIR["experts"], *words, "--output-dir", str(tmp_path / "run")]  # type: ignore[misc]
    process = subprocess.Popen([sys.executable, "-m", "marlab", *words])
    worlds = tmp_path / "run" / "worlds"
    while process.poll() is None and not list(worlds.glob("*.parquet")):
        time.sleep(0.02)
    process.kill()
    process.wait()
    early = {file: file.stat().st_mtime_ns for file in worlds.glob("*.parquet")}
    (worlds / ".half.parquet.abcdefgh.tmp").write_bytes(b"half of a log")  # what a kill in the middle of writing leaves
    assert 1 <= len(early) < 4
    assert main([*words, "--resumable"]) == 0
    assert logs_in(tmp_path / "run") == logs_in(reference)
    assert all(file.stat().st_mtime_ns == when for file, when in early.items())
    counted = Counter(row["world_id"] for row in lines_of(tmp_path / "run" / "worlds.jsonl"))
    assert len(counted) == 4 and set(counted.values()) == {1}


@pytest.mark.long
def test_misfits_cost_their_own_worlds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One world that hangs, one whose expert crashes, one whose process is killed, one that is fine."""
    monkeypatch.setenv(rogue_agents.MARK, str(tmp_path / "mark"))
    misfits = [f"{ROGUE}:{name}" for name in ("HangingAgent", "BrokenAgent", "DyingAgent")]
    config = settings(experts=(*misfits, "RandomStdAgent"), n_competitors_per_world=1, world_timeout=20.0)
    path = tmp_path / "run"
    collect(config, RunOptions(output_dir=path), engine=TWO)
    failures = {line["kind"]: line for line in lines_of(path / "failures.jsonl")}
    assert set(failures) == {"timeout", "raised"}
    assert "before_step" in failures["timeout"]["error"]
    assert failures["raised"]["reason"] == "RuntimeError: my model is missing"
    rows = {name: row for row in lines_of(path / "worlds.jsonl") for name in tracked_types(row)}
    assert set(rows) == {"DyingAgent", "RandomStdAgent"} and all(row["complete"] for row in rows.values())
    assert rows["DyingAgent"]["attempts"] == 2 and rows["RandomStdAgent"]["attempts"] == 1
    said = capsys.readouterr().out
    assert "planned: 4 worlds" in said and "hours" in said
    assert "worlds failed: 2" in said and "1 x raised: RuntimeError: my model is missing" in said


def tracked_types(row: dict[str, Any]) -> set[str]:
    return {agent["type"] for agent in row["agents"] if agent["tracked"]}


# --- what the collecting process itself does, with results that were computed before -----------------------------


@pytest.fixture
def replayed(reference: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts an engine in place that hands out the reference's logs, or an error, without playing anything."""

    def use(error: str = "", kind: str = "raised") -> None:
        def results(function: Any, tasks: Any, engine: Any, stop: Any = None) -> Iterator[TaskResult]:
            for task in tasks:
                content = (reference / "worlds" / f"{task.key}.parquet").read_bytes()
                yield TaskResult(task.key, kind, error=error) if error else TaskResult(task.key, "ok", (content, 1.0))  # type: ignore[arg-type]

        monkeypatch.setattr(module, "run_tasks", results)

    return use


def test_if_nothing_can_be_played_the_collection_says_why(tmp_path: Path, replayed: Callable[..., None]) -> None:
    replayed(error="Traceback (most recent call last):\n  File ...\nImportError: no such library")
    with pytest.raises(UserError, match=r"No world could be played.*ImportError: no such library"):
        run_to(tmp_path / "run", settings())
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "failed"
    assert len(lines_of(tmp_path / "run" / "failures.jsonl")) == 2


def test_a_full_disk_stops_the_collection_which_resumes(
    reference: Path, tmp_path: Path, replayed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []

    @contextmanager
    def disk_for_two(path: Path) -> Iterator[Path]:
        if len(kept) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        with replacing(path) as temporary:
            yield temporary
        kept.append(path)

    replayed()
    with monkeypatch.context() as patch:
        patch.setattr(module, "replacing", disk_for_two)
        with pytest.raises(UserError, match=r"disk is full: 2 finished worlds are kept.*--resume"):
            run_to(tmp_path / "run", settings(configs=2))
    assert len(logs_in(tmp_path / "run")) == 2
    assert logs_in(run_to(tmp_path / "run", settings(configs=2), resume=True)) == logs_in(reference)


def test_a_full_disk_of_a_worker_stops_the_collection_at_its_first_world(
    tmp_path: Path, replayed: Callable[..., None]
) -> None:
    replayed(error=f"Traceback ...\nOSError: [Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}: '/tmp/x'")
    with pytest.raises(UserError, match="disk is full: 0 finished"):
        run_to(tmp_path / "run", settings(configs=2))
    assert len(lines_of(tmp_path / "run" / "failures.jsonl")) == 1


def test_a_lost_line_is_made_again_from_the_log(tmp_path: Path, replayed: Callable[..., None]) -> None:
    replayed()
    path = run_to(tmp_path / "run", settings())
    whole = lines_of(path / "worlds.jsonl")
    (path / "worlds.jsonl").write_text(json.dumps(whole[0]) + '\n{"world_id": "c0')  # a kill cut the second line
    run_to(path, settings(), resume=True)
    rows = module.Collection(path).finished()
    assert set(rows) == {row["world_id"] for row in whole}
    assert all(rows[row["world_id"]][name] == row[name] for row in whole for name in ("agents", "bytes"))


def test_an_interrupt_leaves_a_collection_that_can_be_resumed(
    tmp_path: Path, replayed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed()
    add = module.Collection.add

    def add_and_interrupt(self: Any, result: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return add(self, result)

    with monkeypatch.context() as patch:
        patch.setattr(module.Collection, "add", add_and_interrupt)
        run = collect(settings(), RunOptions(output_dir=tmp_path / "run"), engine="serial", quiet=True)
    assert run.exit_code == 128 + signal.SIGINT
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "interrupted"
    assert len(logs_in(tmp_path / "run")) == 1
    assert len(logs_in(run_to(tmp_path / "run", settings(), resume=True))) == 2


def test_simulator_tables_are_kept_on_request_and_change_no_log(tmp_path: Path) -> None:
    (spec,) = CollectionPlan(settings(experts=("RandomStdAgent",)))
    plain, _ = record_task(spec.to_dict(), None)
    kept, _ = record_task(spec.to_dict(), str(tmp_path / "tables"))
    assert kept == plain
    assert any((tmp_path / "tables").iterdir())
