"""What recording a market world costs, how large its log is, and whether memory grows with the number of worlds.

    python benchmarks/market_record.py                         # cost and size
    python benchmarks/market_record.py --memory 30 300         # memory of a collection of 30 and of 300 small worlds

Cost: one world of 12 factories (3 levels x 4) and 50 days per population, played in CPU seconds
`default`: the simulator's own settings (its tables, its saved negotiations, calls with time limits);
`fast`: the settings that marlab plays with; `recorded`: the same and every agent recorded, the log written;
`attached`: the same by `marlab.market.record.attach`, as in a world that somebody else made.
The four take turns in one process, and the least of the rounds counts. All must end with the same scores.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import commit, describe

POPULATIONS = {
    "Penguin": ("PenguinAgent",),
    "2026 entrants": ("SBD", "TakaLinkAgent", "Std", "COW", "Rohn"),
    "2025 top 3, Penguin, two random": (
        "AS0",
        "XenoSotaAgent",
        "UltraSuperMiracleSoraFinalAgentZ",
        "PenguinAgent",
        "RandomStdAgent",
        "SyncRandomStdAgent",
    ),
}


def spec_of(agents: tuple[str, ...], days: int) -> Any:
    from marlab.market.simulator.worlds import WorldSpec

    seated = tuple(agents[i % len(agents)] for i in range(12))
    return WorldSpec("bench", 5, 6, days, tuple(i // 4 for i in range(12)), seated, (True,) * 12)


def cost(rounds: int, days: int) -> None:
    """Print the table of costs, ratios and sizes."""
    from marlab.market import record
    from marlab.market.logs.worldfile import write_world
    from marlab.market.simulator.record import record_world
    from marlab.market.simulator.worlds import play, playing

    heads = (("default", 8), ("fast", 8), ("recorded", 9), ("attached", 9), ("rec/fast", 9), ("att/fast", 9))
    print(f"{'population':34} {' '.join(f'{head:>{width}}' for head, width in heads)} {'rec/default':>12} {'KB':>7}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "world.parquet"
        for name, agents in POPULATIONS.items():
            spec = spec_of(agents, days)
            best: dict[Any, float] = dict.fromkeys(("default", "fast", "recorded", "attached"), float("inf"))
            scores = []
            for _ in range(rounds):
                for how in best:
                    gc.collect()  # what the run before left behind is not this one's cost
                    start = time.process_time()
                    if how == "recorded":
                        log = record_world(spec)
                        write_world(file, log)
                        scores.append([agent["score"] for agent in log.agents])
                    elif how == "attached":
                        with playing(spec) as world, record.attach(world, Path(folder) / "attached"):
                            world.run()
                        scores.append(list(world.scores().values()))
                    else:
                        world = play(spec, settings=how)
                        scores.append(list(world.scores().values()))
                    best[how] = min(best[how], time.process_time() - start)
            assert all(found == scores[0] for found in scores), f"{name}: results differ"
            default, fast, recorded, attached = best.values()
            print(
                f"{name:34} {default:7.2f}s {fast:7.2f}s {recorded:8.2f}s {attached:8.2f}s {recorded / fast:9.3f} "
                f"{attached / fast:9.3f} {recorded / default:12.3f} {file.stat().st_size / 1000:7.1f}",
                flush=True,
            )


def memory(counts: list[int]) -> None:
    """Most memory of a collecting process and of any world's process, for collections of different sizes."""
    print(f"\n{'worlds':>7} {'collecting process MB':>22} {'largest world MB':>17} {'worlds/s':>9}")
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            child = [sys.executable, __file__, "--collect", str(count), folder]
            peaks = subprocess.run(child, check=True, capture_output=True, text=True).stdout.split()
            print(f"{count:7} {peaks[0]:>22} {peaks[1]:>17} {count / (time.perf_counter() - start):9.2f}", flush=True)


def collect_small(count: int, folder: str) -> None:
    """A collection of `count` very small worlds, in this process; prints the peaks in MB."""
    import json
    import resource

    from marlab.lab.runs.run import RunOptions
    from marlab.market.collect.collection import collect
    from marlab.market.collect.plan import MarketCollectConfig

    config = MarketCollectConfig(experts=("RandomStdAgent",), configs=count, runs=1, steps=5, processes=(2, 2))
    run = collect(config, RunOptions(output_dir=Path(folder) / "run"), engine="local", quiet=True)
    rows = [json.loads(line) for line in (run.path / "worlds.jsonl").read_text().splitlines()]
    assert len(rows) == count
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, max(row["peak_mb"] for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--days", type=int, default=50)
    parser.add_argument("--memory", type=int, nargs="*", default=[], metavar="WORLDS")
    parser.add_argument("--collect", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.collect:
        collect_small(int(options.collect[0]), options.collect[1])
        return
    if os.environ.get("PYTHONHASHSEED") != "0":  # agents iterate over sets: fixed, so that the table can be repeated
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})
    print(f"{describe()}; commit {commit()}")
    if options.memory:
        memory(options.memory)
        return
    print(f"12 factories, {options.days} days, CPU seconds, least of {options.rounds} rounds in turn\n")
    cost(options.rounds, options.days)


if __name__ == "__main__":
    main()
