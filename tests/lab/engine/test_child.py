"""The parts under the engine: process trees, and one child at a time."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from marlab.lab.engine import child
from marlab.lab.engine.child import ChildRunner, close_batch, run_on_worker, usable_cores
from marlab.lab.engine.processes import descendants
from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.lab.engine.wire import FunctionSpec, Job, Outcome
from tests.lab.engine import tasks_to_do as engine_tasks
from tests.lab.engine.cases import squares


def spec(module: str, name: str, idle_s: float | None = None) -> FunctionSpec:
    return FunctionSpec("a batch", module, name, tuple(sys.path), os.getcwd(), "0", idle_s)


def job(*args: object) -> Job:
    return Job("a key", pickle.dumps((args, {})), None, None)


def test_children_work_without_preloading() -> None:
    """What macOS relies on."""
    runner = ChildRunner(spec("operator", "neg"), preload=False)
    assert pickle.loads(runner.run(job(3)).payload) == -3
    runner.close()


def test_a_runner_is_shared_by_threads_and_closed_by_another() -> None:
    runner = ChildRunner(spec("time", "sleep"))
    outcomes: list[Outcome] = []
    threads = [threading.Thread(target=lambda: outcomes.append(runner.run(job(3600)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    while len([p for p in descendants(os.getpid()) if os.getsid(p) == p]) < 4:  # the nursery and three children
        time.sleep(0.02)
    runner.close()
    for thread in threads:
        thread.join(120)
    assert [outcome.kind for outcome in outcomes] == ["cancelled"] * 3
    assert runner.run(job(0)).kind == "cancelled"


def test_an_unwanted_task_is_ended() -> None:
    runner = ChildRunner(spec("time", "sleep"))
    assert runner.run(job(3600), cancelled=lambda: True).kind == "cancelled"
    assert runner.run(job(0), cancelled=lambda: False).kind == "ok"
    runner.close()


def test_a_worker_without_resources_reports_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = ChildRunner(spec("operator", "neg"))
    with monkeypatch.context() as patch:
        patch.setattr(child, "anonymous_file", lambda _: (_ for _ in ()).throw(OSError(24, "Too many open files")))
        outcome = runner.run(job(1))
    assert outcome.kind == "died"
    assert "Too many open files" in outcome.error
    assert runner.run(job(1)).kind == "ok"
    runner.close()


def test_closing_does_not_wait_for_a_long_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_import.py").write_text(
        f"open({str(tmp_path / 'begun')!r}, 'w')\nimport time\ntime.sleep(3600)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    runner = ChildRunner(spec("slow_to_import", "anything"))
    thread = threading.Thread(target=runner.run, args=(job(),))
    thread.start()
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    monkeypatch.setattr(child, "_CLOSE_S", 3600)
    runner.close()
    thread.join(120)
    assert not thread.is_alive()


def test_idle_processes_end_themselves_and_come_back() -> None:
    before = psutil.Process().children(recursive=True)  # of other tests in this process
    runner = ChildRunner(spec("operator", "neg", idle_s=0.2))
    assert runner.run(job(1)).kind == "ok"
    processes = [process for process in psutil.Process().children(recursive=True) if process not in before]
    assert processes
    psutil.wait_procs(processes, timeout=120)
    assert not [process for process in processes if process.is_running()]
    assert pickle.loads(runner.run(job(2)).payload) == -2
    runner.close()


def test_a_worker_refuses_a_batch_that_was_closed() -> None:
    function = spec("operator", "neg")
    assert run_on_worker(function, job(1)).kind == "ok"
    close_batch(function.batch)
    assert run_on_worker(function, job(1)).kind == "cancelled"


def test_the_interpreter_of_a_child_sees_what_ours_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "found_by_path.py").write_text("def where(): return __file__\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    runner = ChildRunner(spec("found_by_path", "where"))
    assert pickle.loads(runner.run(job()).payload) == str(tmp_path / "found_by_path.py")
    runner.close()


def test_results_come_as_they_finish(tmp_path: Path) -> None:
    go = tmp_path / "go"
    tasks = [Task("slow", (str(go),)), Task("quick", (str(tmp_path),))]
    results = run_tasks(engine_tasks.wait_for, tasks, EngineConfig("local", workers=2))
    assert next(results).key == "quick"
    go.touch()
    assert [result.key for result in results] == ["slow"]


def test_tasks_are_taken_only_as_they_are_needed() -> None:
    taken = 0

    def endless() -> Iterator[Task]:
        nonlocal taken
        while True:
            taken += 1
            yield Task(str(taken), (taken,))

    results = run_tasks(engine_tasks.square, endless(), EngineConfig("local", workers=2))
    for _ in range(10):
        next(results)
    results.close()
    assert taken <= 10 + 4  # two at work, two ready


def test_no_process_is_left_after_a_batch() -> None:
    before = set(psutil.Process().children(recursive=True))
    list(run_tasks(engine_tasks.square, squares(4), "local"))
    results = run_tasks(time.sleep, [Task(str(n), (3600,)) for n in range(6)] + [Task("now", (0,))], "local")
    first = next(run_tasks(engine_tasks.square, squares(4), "local"))  # dropped half-way
    assert first.ok
    results.close()  # never started
    assert set(psutil.Process().children(recursive=True)) <= before


def test_cores_respect_affinity() -> None:
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))
