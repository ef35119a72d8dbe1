"""How long the notebook takes: pages of 1,000 runs, the same again after one has changed, the index in Chromium.

    python benchmarks/notebook.py

A run here has 120 records of 20 metrics, four figures, two checkpoints of 100 kB and a verdict. Seconds of CPU and of
the clock; the reference is an interpreter that reads and parses the same records and metrics and does nothing else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import describe

from marlab.lab.notebook.site import build
from marlab.lab.report.figures import Curve, curves
from marlab.lab.report.style import panels, save

RUNS, RECORDS, METRICS = 1000, 120, 20
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def make_runs(root: Path) -> None:
    """1,000 run folders; the first is made, the others are copies with a name and a seed of their own."""
    first = root / "fish" / "run-0000"
    for folder in ("figures", "checkpoints"):
        (first / folder).mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in "abcd":
        figure, [ax] = panels(size=(7.4, 4.6))
        curves(ax, {"a": Curve(range(RECORDS), rng.normal(size=RECORDS))}, xlabel="step", ylabel="score", title=name)
        save(figure, first / "figures" / f"{name}.png")
    for name in ("model_iter_1.pt", "model_iter_2.pt"):
        (first / "checkpoints" / name).write_bytes(rng.bytes(100_000))
    walks = np.cumsum(rng.normal(size=(RECORDS, METRICS)), axis=0)
    rows = [
        {"step": i, **{f"group_{j % 4}/metric_{j}": float(x) for j, x in enumerate(row)}} for i, row in enumerate(walks)
    ]
    (first / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (first / "config.json").write_text(json.dumps({f"setting_{i}": i for i in range(60)}))
    verdict = [{"key": "lab.compare.equal", "numbers": {"name": "a", "other": "b", "what": "score", "value": 0.5}}]
    for i in range(RUNS):
        path = root / ("fish", "hunt", "market")[i % 3] / f"run-{i:04}"
        if i:
            shutil.copytree(first, path)
        record = {
            "schema": 1, "world": path.parent.name, "name": path.name, "status": "finished", "seed": i,
            "created": f"2026-03-{1 + i % 28:02}T10:00:00+00:00", "verdict": verdict,
            "results": {"score": {"value": 0.5 + i / 4000, "low": 0.4, "high": 0.9}},
            "judged_by": {"results": ["score"], "metric": "group_0/metric_0", "better": "higher"},
        }  # fmt: skip
        (path / "run.json").write_text(json.dumps(record))


def timed(work: object) -> tuple[float, float]:
    clock, cpu = time.perf_counter(), time.process_time()
    work()  # type: ignore[operator]
    return time.perf_counter() - clock, time.process_time() - cpu


def parse_all(root: Path) -> None:
    for path in root.glob("*/*/run.json"):
        json.loads(path.read_text())
        for line in (path.parent / "metrics.jsonl").read_text().splitlines():
            json.loads(line)


def first_paint(index: Path) -> tuple[float, float]:
    """(seconds to the first paint of something, seconds until the runs are listed)."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as library:
        browser = library.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page()
        found = []
        for _ in range(5):
            page.goto(index.as_uri())
            page.wait_for_selector("html[data-ready]")
            found.append(
                page.evaluate("""() => {
                const paint = performance.getEntriesByName("first-contentful-paint")[0];
                return [paint ? paint.startTime : NaN, notebook.readyAt];
            }""")
            )
        browser.close()
    paint, listed = np.nanmedian(np.array(found, dtype=float), axis=0) / 1000
    return float(paint), float(listed)


def main() -> None:
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_runs(root)
        print(f"{RUNS} runs of {RECORDS} records of {METRICS} metrics")
        for name, work in {
            "parse records and metrics (reference)": lambda: parse_all(root),
            "all pages": lambda: build(root),
            "again, nothing changed": lambda: build(root),
            "again, one run changed": lambda: ((root / "fish" / "run-0000" / "note.md").write_text("x"), build(root)),
        }.items():
            clock, cpu = timed(work)
            print(f"{name}: {clock:.2f} s, {cpu:.2f} s of CPU")
        words = [sys.executable, "-m", "marlab", "report", "--root", str(root)]
        clock, _ = timed(lambda: subprocess.run(words, check=True, capture_output=True))
        print(f"`marlab report` as a command, nothing changed: {clock:.2f} s")
        paint, listed = first_paint(root / "index.html")
        print(f"index in Chromium: first paint {paint:.2f} s, runs listed {listed:.2f} s after the page was asked for")


if __name__ == "__main__":
    main()
