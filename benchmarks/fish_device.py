"""Speed of the fish simulator on a GPU: eager and compiled, several batch sizes.

    python benchmarks/fish_device.py                         # 11 and 18 inputs, some five minutes, most of it compiling
    python benchmarks/fish_device.py --engines compiled --arenas 65536 --inputs 18
    python benchmarks/fish_device.py --engines compiled --sea pursuit --inputs 18

Before anything is timed, each engine is compared with the eager one over 40 steps with resets, every step from the same
state. `equal` means: at most one fish in a million sees or dies otherwise (a rounding that falls on a border), and all
other observations and rewards agree within 1e-4. Timing replays a CUDA graph of 16 steps with random actions and renews
the starts every 128 steps, as a trainer does. A fish-step is one slot of one arena advanced by one step with
observation, reward, automatic resets and statistics; the figure is the median over such rounds of 128 steps, the best
one in brackets. A part that fails is reported and the rest goes on.
"""

from __future__ import annotations

import argparse
import statistics
import time
import traceback
from dataclasses import replace
from typing import Any

import torch
from machine import commit, describe

from marlab.fish.sea import dynamics
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.seas import SEAS
from marlab.fish.sea.world import FishWorld

GRAPH_STEPS, REFILL_STEPS, TIMED_S = 16, 128, 1.5
LAYOUTS = ("fish innermost", "arena innermost")
ENGINES: dict[str, dict[str, Any]] = {"eager": {}, "compiled": {"compile": True}}
CLOSE, FEW = 1e-4, 1e-6
"""How far an observation or reward may be off, and the share of fish whose lot rounding may decide."""


def config(sea: str, inputs: int) -> SeaConfig:
    social = {"include_neighbor_features": inputs == 18, "density_penalty_coef": 0.04 * (inputs == 18)}
    return replace(SEAS[sea], **social)


def use_layout(layout: str, device: str) -> None:
    (dynamics.ARENA_INNERMOST.add if layout == "arena innermost" else dynamics.ARENA_INNERMOST.discard)(device)


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def compare(cfg: SeaConfig, arenas: int, device: str, engine: str, steps: int = 40) -> str:
    """The engine beside the eager one, every step from the same state."""
    options: dict[str, Any] = {"seed": 1, "device": device, "force_reset_steps": 17, "bank": 4 * arenas}
    eager, other = FishWorld(cfg, arenas, **options), FishWorld(cfg, arenas, **options, **ENGINES[engine])
    generator = torch.Generator(device=device).manual_seed(0)
    apart, worst, exact = 0, 0.0, True
    for _ in range(steps):
        actions = torch.randint(0, 5, (arenas, cfg.num_fish), generator=generator, device=device)
        a, b = eager.step(actions), other.step(actions)
        lots = (eager.state.alive != other.state.alive) | (a.terminated != b.terminated) | (a.truncated != b.truncated)
        gap = torch.maximum((eager.observe() - other.observe()).abs().amax(-1), (a.reward - b.reward).abs())
        otherwise = lots | (gap > CLOSE)
        apart += int(otherwise.sum())
        worst = max(worst, float(gap[~otherwise].max()))
        exact &= all(torch.equal(mine, theirs) for mine, theirs in zip(eager.state, other.state))
        other.load_state_dict(eager.state_dict())
    total = steps * arenas * cfg.num_fish
    ok = apart <= FEW * total
    state = "states to the bit, " if exact else ""
    return (
        f"{'equal' if ok else 'NOT EQUAL'}: {state}{apart} of {total:,} fish-steps apart, the rest within {worst:.1e}"
    )


def rate(cfg: SeaConfig, arenas: int, device: str, engine: str) -> str:
    """Fish-steps per second: the median round and the best."""
    world = FishWorld(cfg, arenas, device=device, **ENGINES[engine])
    actions = torch.randint(0, 5, (GRAPH_STEPS, arenas, cfg.num_fish), device=device)
    play = replayed(world, actions) if device == "cuda" else lambda: [world.step(row) for row in actions]
    for _ in range(2):
        play()
    wait(device)
    rounds, began = [], time.perf_counter()
    while time.perf_counter() - began < TIMED_S:
        start = time.perf_counter()
        for _ in range(REFILL_STEPS // GRAPH_STEPS):
            play()
        world.refill()
        wait(device)
        rounds.append(REFILL_STEPS * arenas * cfg.num_fish / (time.perf_counter() - start))
    return f"{statistics.median(rounds) / 1e9:.3f} G ({max(rounds) / 1e9:.3f})"


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


def attempt(what: str, work) -> str:  # type: ignore[no-untyped-def]
    try:
        return str(work())
    except Exception:
        print(f"{what} failed:\n{traceback.format_exc(limit=4)}", flush=True)
        return "failed"
    finally:
        torch._dynamo.reset()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arenas", type=int, nargs="+", default=[8192, 65536])
    parser.add_argument("--inputs", type=int, nargs="+", default=[18, 11], choices=[11, 18])
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS[:1]), choices=LAYOUTS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tune", action="store_true", help="let the compiler search for better block sizes")
    parser.add_argument("--sea", nargs="+", default=["v32"], choices=list(SEAS), help="whose predators")
    args = parser.parse_args()
    torch.set_grad_enabled(False)
    print(describe(), "commit", commit())
    if args.tune:
        torch._inductor.config.coordinate_descent_tuning = True
    print(f"{'sea':>10} {'inputs':>6} {'layout':>16} {'arenas':>8} {'engine':>9}  fish-steps/s")
    for sea in args.sea:
        for inputs in args.inputs:
            cfg = config(sea, inputs)
            for layout in args.layouts:
                use_layout(layout, args.device)
                for engine in args.engines:
                    for n in args.arenas:
                        figure = attempt(engine, lambda c=cfg, b=n, e=engine: rate(c, b, args.device, e))
                        print(f"{sea:>10} {inputs:>6} {layout:>16} {n:>8} {engine:>9}  {figure}", flush=True)
                    if engine != "eager":
                        few = min(*args.arenas, 4096)
                        verdict = attempt(engine, lambda c=cfg, b=few, e=engine: compare(c, b, args.device, e))
                        print(f"{'':>10} {engine} beside eager, {verdict}", flush=True)


if __name__ == "__main__":
    main()
