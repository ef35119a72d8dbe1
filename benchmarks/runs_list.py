"""How long `marlab runs` takes to list many runs, its start included.

    python benchmarks/runs_list.py                # 1,500 runs
    python benchmarks/runs_list.py --runs 200

Run folders are made first, each with a record of usual size, a config and fifty records of forty metrics. Reference in
the same run: an interpreter that starts, imports numpy and parses the same records, and does nothing else.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import commit, describe

from marlab.lab.runs.record import new_record

RESULTS = ("survival", "share of the possible", "worst episode", "minus side-step")
PLAIN = (
    "import json, pathlib, sys, numpy\n"
    "for p in sorted(pathlib.Path(sys.argv[1]).glob('*/*')): json.loads((p / 'run.json').read_text())\n"
)


def make(root: Path, count: int) -> None:
    for number in range(count):
        world, stamp = ("fish", "hunt", "market")[number % 3], "2026-03-01T10:00:00+00:00"
        path = root / world / f"run-s{number}-abcdef"
        path.mkdir(parents=True)
        attempt = {"started": stamp, "ended": stamp, "status": "finished", "reason": None, "seconds": 3600.0}
        found = {"value": 0.9, "low": 0.8, "high": 0.95, "unit": "share of fish", "note": "64 x 96 held-out fish"}
        record = new_record(world, path.name) | {
            "status": "finished", "command": f"marlab {world} train --seed {number}", "started": stamp, "ended": stamp,
            "attempts": [attempt], "tags": ["long"], "group": "widths", "goal": "does width help?",
            "stages": [{"name": f"phase {i}", "lr": "1e-4 -> 1e-5"} for i in range(7)],
            "results": {f"final model: {name}": found for name in RESULTS},
        }  # fmt: skip
        (path / "run.json").write_text(json.dumps(record, indent=2))
        (path / "config.json").write_text(json.dumps({f"setting_{i}": i for i in range(150)}))
        row = {"time": 1.0, **{f"custom/metric_{i}": 0.1 * i for i in range(40)}}
        (path / "metrics.jsonl").write_text("".join(json.dumps({"step": k, **row}) + "\n" for k in range(50)))


def timed(words: list[str]) -> tuple[float, float]:
    """(wall seconds, CPU seconds) of a process of its own."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=1500)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    print(f"{describe()}, commit {commit()}, {args.runs} runs, best of {args.repeats}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        make(root, args.runs)
        listed = ["-m", "marlab", "runs", "--root", str(root)]
        cases = {"marlab runs": listed, "marlab runs --sort survival": [*listed, "--sort", "survival"]}
        for name, words in {**cases, "reference: only parse": ["-c", PLAIN, str(root)]}.items():
            wall, cpu = (min(times) for times in zip(*(timed(words) for _ in range(args.repeats))))
            print(f"{name:<28} {wall:.2f} s, {cpu:.2f} s of CPU")


if __name__ == "__main__":
    main()
