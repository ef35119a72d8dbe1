"""Speed of the whole fish training loop, and the time it takes to reach 0.95 survival.

    python benchmarks/fish_training.py                  # the CPU, one thread
    python benchmarks/fish_training.py --device cuda    # larger shoals too, 11 and 18 inputs

A fish-step is one living fish advanced by one step; each is one sample of the learner. The original learned from one
fish per arena: 290 samples/s on one core of a like machine. CPU rates are per second of CPU time, GPU rates per second
of wall time; probes are not part of it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from machine import commit, describe

from marlab.fish.measure.probe import at_settings, draw_seeds, greedy, run_probe
from marlab.fish.training.config import PRESETS, FishTrainConfig
from marlab.fish.training.train import FishTrainer
from marlab.lab.config import from_dict, load_preset

ORIGINAL = 290.0  # learned samples per second of one core


def best(**changes: object) -> FishTrainConfig:
    """The preset `best` without curriculum, probes and hard starts."""
    preset = load_preset("best", PRESETS)
    plain = {
        "curriculum": "",
        "multi_eval_interval": 0,
        "tail_seed_stage_spec": "",
        "penalty_gate_required_successes": 0,
        "threads": 1,
    }
    return from_dict(FishTrainConfig, {**preset.values, **plain, **changes}, "benchmark")


def loop(config: FishTrainConfig, iterations: int, name: str) -> None:
    """Samples per second over some iterations after a warm-up of two."""
    trainer = FishTrainer(config)
    for _ in range(2):
        trainer.iterate()
    parts: dict[str, float] = {}
    samples, start, cpu_start = 0.0, time.perf_counter(), time.process_time()
    for _ in range(iterations):
        metrics = trainer.iterate()
        samples += metrics["ppo/samples"]
        for part in ("world", "policy", "learning"):
            parts[part] = parts.get(part, 0.0) + metrics[f"time/{part}"]
    if trainer.device.type == "cuda":
        torch.cuda.synchronize()
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    # On a shared machine the CPU's own seconds say more than the clock on the wall.
    spent = wall if trainer.device.type == "cuda" else cpu
    shares = ", ".join(f"{k} {v / wall:.0%}" for k, v in parts.items())
    print(
        f"{name:<46}{samples / spent:>14,.0f} samples/s ({samples / spent / ORIGINAL:,.0f} times 290); {shares}",
        flush=True,
    )


def time_to(config: FishTrainConfig, goal: float, limit_s: float) -> None:
    """Training time until 20 x 96 held-out fish reach `goal` survival twice in a row."""
    trainer = FishTrainer(config)
    cfg = at_settings(trainer.sea, 96, config.sea.escape_boost_speed, 0.0)
    seeds = draw_seeds(np.random.default_rng(5), 20)
    spent, hits, samples, survival = 0.0, 0, 0.0, 0.0
    while hits < 2 and spent < limit_s:
        start = time.perf_counter()
        samples += trainer.iterate()["ppo/samples"]
        spent += time.perf_counter() - start
        survival = float((run_probe(greedy(trainer.net), cfg, seeds, trainer.device).death_steps < 0).mean())
        hits = hits + 1 if survival >= goal else 0
    reached = "reached" if hits == 2 else "NOT reached"
    work = f"{trainer.step} iterations, {samples / 1e6:.2f} M samples"
    print(f"{goal} {reached} after {spent:.1f} s, {work} ({survival:.4f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--iterations", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe()}, commit {commit()}")
    if args.device == "cpu":
        loop(best(device="cpu"), args.iterations, "best (192 x 25, 11 inputs, 64-64), CPU")
        loop(best(device="cpu", include_neighbor_features=True), args.iterations, "the same with 18 inputs")
        time_to(best(device="cpu"), 0.95, 600.0)
        return
    time_to(best(device="cuda", cuda_graph=True), 0.95, 120.0)
    for neighbours in (False, True):
        for arenas, steps, batch in ((16384, 64, 262144),):
            for compiled in (False, True):
                config = best(
                    device="cuda", cuda_graph=True, compile=compiled, include_neighbor_features=neighbours,
                    num_envs=arenas, n_steps=steps, batch_size=batch,
                )  # fmt: skip
                name = (
                    f"{arenas} x 25, {18 if neighbours else 11} inputs, batch {batch}{', compiled' if compiled else ''}"
                )
                try:
                    loop(config, args.iterations, name)
                except Exception as error:  # one failure must not lose the other rows
                    print(f"{name}: failed, {type(error).__name__}: {str(error)[:200]}", flush=True)
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
