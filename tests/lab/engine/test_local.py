"""The engines serial and local: threads that each wait for one child, and nothing left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from marlab.lab.engine.local import usable_cores
from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from tests.lab.engine import tasks_to_do as engine_tasks
from tests.lab.engine.cases import squares


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
