"""Speed of offline learning in the market: L2 on one CPU core, L3 on a GPU.

    python benchmarks/market_training.py                       # L2 on one core, and L3 where there is a GPU
    python benchmarks/market_training.py --l3-rows 18000000    # also time a whole epoch over that many decisions

L2: samples (days) per second of CPU time of one thread, forward, backward, optimiser and batching, batch 512.
L3: tokens per second of wall time; a token is one of the 21 places of a decision (the prefix and 20 offers, padding
included: it is computed all the same). MFU is 6 x parameters x tokens plus the attention's products, against 989
TFLOP/s dense bfloat16. "busy" is the share of the wall time in which the device runs a kernel, from the profiler.
The samples are random; their values do not change the work.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from machine import commit, describe

from marlab.market.learn.settings import TrainConfig
from marlab.market.learn.tables import DayTable, DecisionTable
from marlab.market.learn.trainers import ActionTrainer, DayGoalTrainer, new_executor, new_manager
from marlab.market.samples.dataset import Samples, empty
from marlab.market.samples.options import Sizes

PEAK = 989e12
"""FLOP/s of an H200, dense bfloat16."""
SLOTS = 21


def random_days(rows: int) -> Samples:
    rng = np.random.default_rng(0)
    macro = {
        "x_static": rng.random((rows, 12), np.float32),
        "extra": np.zeros((rows, 0), np.float32),
        "x_temporal": rng.random((rows, 41, 10), np.float32),
        "x_role": np.ones((rows, 2), np.float32),
        "label": rng.random((rows, 16), np.float32) * 10,
        "goal": rng.random((rows, 16), np.float32),
    }
    made = empty(Sizes())
    return Samples(made.sizes, [], {**made.tables, "macro": macro})


def random_decisions(rows: int, distinct: int = 200_000) -> Samples:
    """`rows` decisions, copies of `distinct` random ones in another order."""
    rng = np.random.default_rng(0)
    days = random_days(10_000)
    n = min(rows, distinct)
    length = rng.integers(0, 21, n).astype(np.int16)
    open_days = rng.random((n, 41)) < 0.5
    open_days[:, 0] = True
    some = {
        "macro": rng.integers(0, 10_000, n), "history": rng.integers(0, 100_000, n), "history_length": length,
        "op": rng.integers(0, 3, n).astype(np.int8), "role": rng.integers(0, 2, n).astype(np.int8),
        "baseline": rng.random((n, 3), np.float32), "residual": rng.random((n, 2), np.float32),
        "time_label": np.zeros(n, np.int16), "time_valid": np.ones(n, bool), "time_open": open_days,
        "aux": np.ones((n, 7), np.float32), "acceptable": np.zeros(n, bool), "partner": np.zeros((n, 0), np.float32),
    }  # fmt: skip
    copy = rng.integers(0, n, rows)
    offers = {
        "row": np.ascontiguousarray(rng.random((100_100, 4), np.float32) * np.array([30, 50, 10, 1.9], np.float32))
    }
    offers["row"][:, 3] = np.floor(offers["row"][:, 3])
    micro = some if rows == n else {name: values[copy] for name, values in some.items()}
    return Samples(days.sizes, [], {**days.tables, "micro": micro, "offers": offers})


def l2_on_a_core(rows: int = 20_480) -> None:
    torch.set_num_threads(1)
    settings = TrainConfig(device="cpu")
    device = torch.device("cpu")
    trainer = DayGoalTrainer(
        new_manager(settings, Sizes()), DayTable(random_days(rows), device), None, settings, device
    )
    trainer.iterate()
    rates = []
    for _ in range(3):
        start = time.process_time()
        trainer.iterate()
        rates.append(rows / (time.process_time() - start))
    print(f"L2, one core, batch {settings.l2_batch_size}: {sorted(rates)[1]:,.0f} samples/s (goal 12,000)")


def flops_per_token(parameters: int, width: int, layers: int) -> float:
    """Forward and backward: 6 per weight that a token meets, and the two products of attention over 21 places."""
    return 6.0 * parameters + 12.0 * layers * width * SLOTS


def l3_on_a_gpu(rows: int, batch: int, compiled: bool) -> None:
    device = torch.device("cuda")
    settings = TrainConfig(device="cuda", l3_batch_size=batch, compile=compiled)
    samples = random_decisions(max(rows, 16 * batch))
    model = new_executor(settings, 40)
    trainer = ActionTrainer(model, DecisionTable(samples, device), None, settings, device)
    order = torch.randperm(trainer.train.rows, device=device)
    batches = [part for part in order.split(batch) if len(part) == batch]

    def step(index: torch.Tensor) -> None:
        loss, _ = trainer.losses(trainer.train, index)
        trainer.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainer.parameters, 0.5)
        trainer.optimiser.step()

    for index in batches[:4]:
        step(index)
    torch.cuda.synchronize()
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < 4 or steps < 8:
        step(batches[steps % len(batches)])
        steps += 1
        if steps % 8 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    wall = time.perf_counter() - start
    tokens = steps * batch * SLOTS / wall
    weights = sum(p.numel() for p in model.blocks.parameters())
    used = flops_per_token(weights, settings.l3_width, settings.l3_layers) * tokens
    busy, top = device_busy(step, batches[:8])
    how = "compiled" if compiled else "eager"
    print(
        f"L3, {how}, batch {batch}: {tokens / 1e6:.1f} M tokens/s (goal 5 M), {wall / steps * 1e3:.1f} ms a step, "
        f"MFU {used / PEAK:.1%} of 989 TFLOP/s, device busy {busy:.0%}, "
        f"18 M decisions in {18e6 * SLOTS / tokens:.0f} s"
    )
    print(top)
    if rows > 1_000_000:
        torch.cuda.synchronize()
        start = time.perf_counter()
        trainer.iterate()
        torch.cuda.synchronize()
        print(
            f"L3, {how}: a whole epoch over {trainer.train.rows:,} decisions took {time.perf_counter() - start:.1f} s"
        )


def device_busy(step, batches) -> tuple[float, str]:
    """Share of the wall time with a kernel running, and the kernels that take most of it."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        start = time.perf_counter()
        for index in batches:
            step(index)
        torch.cuda.synchronize()
        wall = time.perf_counter() - start
    averages = found.key_averages()
    total = sum(e.self_device_time_total for e in averages) * 1e-6
    top = sorted(averages, key=lambda e: -e.self_device_time_total)[:6]
    lines = [f"    {e.self_device_time_total / 1e3 / len(batches):7.2f} ms  {e.key[:90]}" for e in top]
    return total / wall, "  most of a step:\n" + "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--l3-rows", type=int, default=0, help="time an epoch over this many decisions")
    parser.add_argument("--batches", type=int, nargs="+", default=[4096, 16_384], help="L3 batch sizes")
    parser.add_argument("--skip-cpu", action="store_true", help="only the GPU part")
    arguments = parser.parse_args()
    print(f"{describe()}, commit {commit()}")
    if not arguments.skip_cpu:
        l2_on_a_core()
    if torch.cuda.is_available():
        for compiled in (False, True):
            for batch in arguments.batches:
                last = compiled and batch == arguments.batches[-1]
                l3_on_a_gpu(arguments.l3_rows if last else 0, batch, compiled)


if __name__ == "__main__":
    main()
