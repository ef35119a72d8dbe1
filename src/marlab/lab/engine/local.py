"""The engines `serial` and `local`: children of this very process, on this machine."""

from __future__ import annotations

import os
import queue
import threading
from pathlib import Path

from marlab.lab.engine.child import ChildRunner
from marlab.lab.engine.wire import FunctionSpec, Job, Outcome


class LocalBackend:
    """A few threads, each of which waits for one child at a time."""

    def __init__(self, function: FunctionSpec, workers: int, ahead: int) -> None:
        """`ahead`: tasks to hold ready, so that no worker waits for a caller who is busy with a result."""
        self._capacity = workers + ahead
        self._runner = ChildRunner(function)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[str, Outcome]] = queue.SimpleQueue()
        # Daemons: an interpreter that exits without closing us must not wait for running tasks.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def capacity(self) -> int:
        """How many tasks may be under way or waiting here."""
        return self._capacity

    def submit(self, job: Job) -> None:
        """Queue one job."""
        self._jobs.put(job)

    def next_outcome(self) -> tuple[str, Outcome]:
        """Wait for the next job to end; returns its key and what became of it."""
        return self._done.get()

    def close(self) -> None:
        """End all running children and the threads that wait for them."""
        self._runner.close()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.put((job.key, self._runner.run(job)))


def usable_cores() -> int:
    """Cores that this process may really use: its affinity and the quota of its container, at least one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no cgroup limits here
    return max(1, cores)
