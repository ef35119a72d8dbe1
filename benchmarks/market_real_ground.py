"""Real worlds with a learner in their seats, by engine and number of workers: worlds a minute, beside one worker.

    python benchmarks/market_real_ground.py                          # local, 1 and 2 workers
    python benchmarks/market_real_ground.py --engines local ray      # a Ray cluster on this machine too

A world here is small (2x3 factories, built-in agents), so what is measured is the engine and the learner. The time
begins with the first finished world: starting a cluster is not counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from machine import commit, describe

from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.market.networks import around
from marlab.market.online.ground_real import planned, play_task
from marlab.market.online.settings import OnlineConfig


def rate(engine: str, workers: int, worlds: int, days: int) -> tuple[float, float]:
    """Worlds a minute after the first one, and CPU seconds that a world took by itself."""
    config = OnlineConfig(
        shapes=("2x3",), days=(days, days), learners=2, experts=("SyncRandomStdAgent", "RandomStdAgent"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        around.save(Path(folder) / "a.npz", around.untrained(2.0))
        weights = (Path(folder) / "a.npz").read_bytes()
    tasks = [Task(spec.world_id, (spec.to_dict(), weights)) for spec in planned(config, worlds + workers, 1)]
    results = run_tasks(play_task, tasks, EngineConfig(engine, workers=workers))  # type: ignore[arg-type]
    first = next(results)
    assert first.ok, first.error
    began, seconds = time.perf_counter(), []
    for result in results:
        assert result.ok, result.error
        seconds.append(result.seconds)
    return 60 * len(seconds) / (time.perf_counter() - began), sum(seconds) / len(seconds)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", default=["local"])
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--worlds", type=int, default=12)
    parser.add_argument("--days", type=int, default=20)
    asked = parser.parse_args()
    print(f"{describe()}, commit {commit()}, load {os.getloadavg()[0]:.1f}")
    for engine in asked.engines:
        usual = 0.0
        for workers in asked.workers:
            found, each = rate(engine, workers, asked.worlds, asked.days)
            usual = usual or found
            beside = f"x{found / usual:.2f}"
            print(f"{engine:6s} {workers} workers: {found:6.1f} worlds/min ({each:.2f} s a world) {beside}", flush=True)


if __name__ == "__main__":
    main()
