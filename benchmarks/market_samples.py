"""Samples per second from recorded worlds, goals per second from L2, and memory as the number of worlds grows.

    python benchmarks/market_samples.py FOLDER_WITH_WORLDS [--memory 30 300]

One process, one thread; rates are per second of CPU time, so that other work on the machine does not count. A micro
sample is one decision of the expert in one negotiation with all its features (L1, histories, threads, labels); its day
and its joint decision are made along with it, and the time includes reading the log. References in the same run: the
plain parsing of the same logs as tracker JSON (nothing is computed from it), and L2 asked one day at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import numpy as np
import torch

from marlab.lab.runs.run import RunOptions
from marlab.market.logs.find import choose_experts, find_logs, read_logs
from marlab.market.logs.tracker import write_tracker
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.samples.command import SamplesConfig
from marlab.market.samples.dataset import Samples, concatenate
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.goals import predict_goals
from marlab.market.samples.make import make_samples
from marlab.market.samples.options import SampleOptions


def measure_samples(files: list[Path], experts: frozenset[str]) -> tuple[Samples, float]:
    """All samples of some files, and the CPU seconds that reading and making them took."""
    options = SampleOptions()
    start = time.process_time()
    parts = [extract(log, options) for path in files for log in read_logs(path, experts)]
    return concatenate(parts), time.process_time() - start


def json_seconds(files: list[Path], experts: frozenset[str]) -> float:
    """CPU seconds to parse the same logs from tracker files."""
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            for log in read_logs(path, experts):
                write_tracker(log, Path(folder))
        start = time.process_time()
        for path in sorted(Path(folder).glob("*.json")):
            json.loads(path.read_bytes())
        return time.process_time() - start


def report_samples(files: list[Path], name: str) -> Samples:
    """Rates for one choice of experts."""
    experts = choose_experts(name, (kind for log in find_logs(files[0].parent).logs for kind in log.types))
    measure_samples(files[:1], experts)
    samples, seconds = measure_samples(files, experts)
    decisions, days = samples.rows("micro"), samples.rows("macro")
    parsing = json_seconds(files, experts)
    print(f"{name}: {len(files)} worlds, {len(samples.logs)} logs, {days:,} days, {decisions:,} decisions")
    print(
        f"  {decisions / seconds:,.0f} micro samples/s, {days / seconds:,.0f} days/s, reading included"
        f" ({1e3 * seconds / len(files):.1f} ms a world)"
    )
    print(f"  parsing the same logs as JSON alone takes {parsing / seconds:.2f} times as long")
    return samples


def report_backfill(samples: Samples, device: str, batch: int) -> None:
    """Days per second of the L2 network, batched and one at a time."""
    torch.manual_seed(0)
    network = HorizonManagerPPO().to(device).eval()
    repeats = max(1, 20_000 // samples.rows("macro"))
    macro = {name: np.concatenate([values] * repeats) for name, values in samples.macro.items()}
    days = len(macro["day"])
    clock = time.process_time if device == "cpu" else time.perf_counter
    predict_goals(network, {name: values[:batch] for name, values in macro.items()}, batch)
    start = clock()
    predict_goals(network, macro, batch)
    seconds = clock() - start
    few = {name: values[:500] for name, values in macro.items()}
    start = clock()
    predict_goals(network, few, 1)
    slow = (clock() - start) / 500
    print(
        f"backfill on {device}, batch {batch}: {days / seconds:,.0f} days/s, "
        f"{slow * days / seconds:.0f} times one day at a time"
    )
    start = clock()
    with_goals(samples, samples.macro["label"])
    rest = clock() - start
    print(f"  features of L3 and L4 that follow from new goals: {samples.rows('micro') / rest:,.0f} decisions/s")


def peak_memory(folder: Path, worlds: int, expert: str) -> None:
    """Make the data set of so many worlds (copies in turn) and print the peak of this process and its workers."""
    files = [log.path for log in find_logs(folder).logs]
    with tempfile.TemporaryDirectory() as place:
        logs = Path(place) / "logs"
        logs.mkdir()
        for i in range(worlds):
            shutil.copy(files[i % len(files)], logs / f"{i:05d}.parquet")
        config = SamplesConfig(logs=str(logs), agent_name=expert)
        make_samples(config, RunOptions(output_dir=Path(place) / "run"), engine="serial", quiet=True)
        size = sum(path.stat().st_size for path in (Path(place) / "run" / "data").rglob("*.npy"))
    mine, workers = (
        resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(
        f"{worlds} worlds ({size / 1e6:.0f} MB of samples): peak {mine:.0f} MB in the process, "
        f"{workers:.0f} MB in a worker"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="recorded worlds of `marlab market collect`")
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--experts", nargs="+", default=["PenguinAgent", "all"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--memory", type=int, nargs="*", default=[], help="numbers of worlds to compare")
    parser.add_argument("--peak", type=int, help="only measure the memory of this many worlds, in this process")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.peak:
        peak_memory(args.folder, args.peak, args.experts[0])
        return
    print(machine.describe(), "commit", machine.commit())
    files = [log.path for log in find_logs(args.folder).logs][: args.worlds]
    for name in args.experts:
        samples = report_samples(files, name)
    report_backfill(samples, args.device, args.batch)
    for worlds in args.memory:  # each in a process of its own: a peak never goes down again
        words = [sys.executable, __file__, str(args.folder), "--peak", str(worlds), "--experts", args.experts[0]]
        subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
