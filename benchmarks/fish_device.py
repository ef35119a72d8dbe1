"""Speed of the fish simulator on a GPU: eager and compiled, both memory layouts, several batch sizes.

    python benchmarks/fish_device.py                         # 11 and 18 inputs, about six minutes, most of it compiling
    python benchmarks/fish_device.py --arenas 16384 --inputs 18 --tune
    python benchmarks/fish_device.py --sea pursuit --inputs 18 --layouts "fish innermost"

Before anything is timed, the compiled step is compared with the eager one over 40 steps with resets. Timing replays a
CUDA graph of 16 steps with random actions and renews the starts every 128 steps, as a trainer does. A fish-step is one
slot of one arena advanced by one step with observation, reward, automatic resets and statistics. A part that fails is
reported and the rest goes on.
"""

from __future__ import annotations

import argparse
import time
import traceback
from dataclasses import replace

import torch
from machine import commit, describe

from marlab.fish.sea import dynamics
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.seas import SEAS
from marlab.fish.sea.world import FishWorld

FISH, GRAPH_STEPS, REFILL_STEPS, TIMED_S = 25, 16, 128, 1.0
LAYOUTS = ("fish innermost", "arena innermost")


SEA = ["v32"]
"""The name of the sea that is timed."""


def config(inputs: int) -> SeaConfig:
    social = {"include_neighbor_features": inputs == 18, "density_penalty_coef": 0.04 * (inputs == 18)}
    return replace(SEAS[SEA[0]], num_fish=FISH, **social)


def use_layout(layout: str, device: str) -> None:
    (dynamics.ARENA_INNERMOST.add if layout == "arena innermost" else dynamics.ARENA_INNERMOST.discard)(device)


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def compare(inputs: int, arenas: int, device: str) -> str:
    """Eager beside compiled from one seed; float rounding may let single fish die a step apart."""
    options = {"seed": 1, "device": device, "force_reset_steps": 17, "bank": 4 * arenas}
    eager, fused = (
        FishWorld(config(inputs), arenas, **options),
        FishWorld(config(inputs), arenas, compile=True, **options),
    )
    generator = torch.Generator(device=device).manual_seed(0)
    worst = {"observation": 0.0, "reward": 0.0, "fish that differ": 0.0}
    for _ in range(40):
        actions = torch.randint(0, 5, (arenas, FISH), generator=generator, device=device)
        a, b = eager.step(actions), fused.step(actions)
        same = (eager.state.alive == fused.state.alive) & (a.terminated == b.terminated) & (a.truncated == b.truncated)
        calm = same.all(1)  # a fish that lives in one world only also changes what its neighbours see
        gap = (eager.observe() - fused.observe()).abs()[calm].max()
        worst["observation"] = max(worst["observation"], float(gap))
        worst["reward"] = max(worst["reward"], float((a.reward - b.reward).abs()[calm].max()))
        worst["fish that differ"] = max(worst["fish that differ"], float((~same).float().mean()))
    ok = worst["observation"] < 2e-3 and worst["reward"] < 2e-3 and worst["fish that differ"] < 1e-3
    return ("equal: " if ok else "NOT EQUAL: ") + ", ".join(f"{name} {value:.1e}" for name, value in worst.items())


def rate(inputs: int, arenas: int, device: str, compiled: bool) -> float:
    """Fish-steps per second."""
    world = FishWorld(config(inputs), arenas, device=device, compile=compiled)
    actions = torch.randint(0, 5, (GRAPH_STEPS, arenas, FISH), device=device)
    play = replayed(world, actions) if device == "cuda" else lambda: [world.step(row) for row in actions]
    for _ in range(2):
        play()
    wait(device)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < TIMED_S:
        for _ in range(REFILL_STEPS // GRAPH_STEPS):
            play()
        world.refill()
        wait(device)
        steps += REFILL_STEPS
    return steps * arenas * FISH / (time.perf_counter() - start)


def replayed(world: FishWorld, actions: torch.Tensor):  # type: ignore[no-untyped-def]
    """A function that plays all rows of `actions` [T, B, F] from a captured graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compile and allocate before the capture
        for row in actions[:3]:
            world.step(row)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for row in actions:
            world.step(row)
    return graph.replay


def attempt(what: str, work) -> object:  # type: ignore[no-untyped-def]
    try:
        return work()
    except Exception:
        print(f"{what} failed:\n{traceback.format_exc(limit=4)}", flush=True)
        return None
    finally:
        torch._dynamo.reset()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arenas", type=int, nargs="+", default=[8192, 65536])
    parser.add_argument("--inputs", type=int, nargs="+", default=[18, 11], choices=[11, 18])
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS), choices=LAYOUTS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tune", action="store_true", help="let the compiler search for better block sizes")
    parser.add_argument("--unroll", action="store_true", help="unroll sums over neighbours into straight code")
    parser.add_argument("--sea", default="v32", choices=SEAS, help="whose predators")
    args = parser.parse_args()
    SEA[0] = args.sea
    torch.set_grad_enabled(False)
    print(describe(), "commit", commit())
    if args.tune:
        torch._inductor.config.coordinate_descent_tuning = True
    if args.unroll:
        torch._inductor.config.unroll_reductions_threshold = 32
    print(f"{'inputs':>6} {'layout':>16} {'arenas':>8} {'eager':>16} {'compiled':>16}  fish-steps/s")
    for inputs in args.inputs:
        for layout in args.layouts:
            use_layout(layout, args.device)
            verdict = attempt("comparison", lambda n=inputs: compare(n, min(args.arenas[0], 4096), args.device))
            for arenas in args.arenas:
                rates = []
                for compiled in (False, True):
                    work = lambda n=inputs, b=arenas, c=compiled: rate(n, b, args.device, c)  # noqa: E731
                    value = attempt("compiled" if compiled else "eager", work)
                    rates.append(f"{value:,.0f}" if isinstance(value, float) else "failed")
                print(f"{inputs:>6} {layout:>16} {arenas:>8} {rates[0]:>16} {rates[1]:>16}", flush=True)
            print(f"       compiled against eager, {verdict}", flush=True)


if __name__ == "__main__":
    main()
