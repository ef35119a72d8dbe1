"""What several tests of the engine share: single tasks, and patience."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks

PATIENCE_S = 600.0


def wait_until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    give_up = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < give_up, "waited too long"
        time.sleep(0.02)


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all of them have ended; one that only waits for its parent to notice has ended, too."""

    def runs(process: psutil.Process) -> bool:
        try:
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:  # it ended between the two questions
            return False

    return not any(map(runs, processes))


def run_one(function: Callable[..., Any], *args: Any, retries: int = 1, **limits: float) -> TaskResult:
    (result,) = run_tasks(function, [Task("only", args, **limits)], EngineConfig("serial", retries=retries))
    return result


def squares(count: int) -> Iterator[Task]:
    return (Task(f"square {n}", (n,)) for n in range(count))
