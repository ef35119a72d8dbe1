"""What the task engine costs per task, beside a process per task and beside a pool that cannot kill.

    python benchmarks/engine_overhead.py                       # serial and local
    python benchmarks/engine_overhead.py --engines serial local dask ray

A task does next to nothing: it calls a function of a small module (`operator.neg`) or of a large one
(`torch.typename`, so every process that runs it needs torch). References in the same run:
`fresh`: a new interpreter for every task, the plain way to have tasks that can be killed;
`pool`: concurrent.futures.ProcessPoolExecutor, which neither limits nor kills a single task.
"""

from __future__ import annotations

import argparse
import multiprocessing
import operator
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch
from machine import commit, describe

from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks

FUNCTIONS: dict[str, Callable[[int], Any]] = {"small module": operator.neg, "torch": torch.typename}


def engine(name: str, function: Callable[[int], Any], tasks: int, workers: int, limited: bool) -> tuple[float, float]:
    """Seconds until the first result, and seconds per task from then on."""
    limits: dict[str, float] = {"time_limit_s": 600, "memory_limit_mb": 4000} if limited else {}
    batch = [Task(str(n), (n,), **limits) for n in range(tasks + 1)]
    config = EngineConfig(name, workers=None if name == "serial" else workers)  # type: ignore[arg-type]
    start = time.perf_counter()
    results = run_tasks(function, batch, config)
    assert next(results).ok
    first = time.perf_counter()
    assert all(result.ok for result in results)
    return first - start, (time.perf_counter() - first) / tasks


def fresh(function: Callable[[int], Any], tasks: int) -> float:
    """Seconds per task when each one gets a fresh interpreter, which imports what the task needs."""
    code = f"from {function.__module__} import {function.__name__}; {function.__name__}(1)"
    start = time.perf_counter()
    for _ in range(tasks):
        subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - start) / tasks


def pool(function: Callable[[int], Any], tasks: int, workers: int) -> float:
    """Seconds per task in a pool of processes that are kept, after they have started."""
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as executor:
        list(executor.map(function, range(4 * workers)))
        start = time.perf_counter()
        list(executor.map(function, range(tasks)))
        return (time.perf_counter() - start) / tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", default=["serial", "local"], choices=["serial", "local", "dask", "ray"])
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2, help="for all but serial")
    options = parser.parse_args()
    print(f"{describe()}; commit {commit()}")
    print(f"{options.tasks} tasks, {options.workers} workers (serial and fresh: 1)\n")
    print(f"{'task needs':14} {'how':18} {'ms per task':>12} {'fresh / it':>11} {'first result s':>15}")
    for need, function in FUNCTIONS.items():
        reference = fresh(function, tasks=10)
        rows = [("fresh", reference, None), ("pool", pool(function, options.tasks, options.workers), None)]
        for name in options.engines:
            for limited in (False, True):
                first, each = engine(name, function, options.tasks, options.workers, limited)
                rows.append((f"{name}, limits" if limited else name, each, first))
        for how, each, first in rows:
            start = "" if first is None else f"{first:.2f}"
            print(f"{need:14} {how:18} {1000 * each:12.2f} {reference / each:10.1f}x {start:>15}")


if __name__ == "__main__":
    main()
