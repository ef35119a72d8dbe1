"""Speed of the fish simulator on one CPU core, beside plain per-fish loops of the same rules in the same run.

    python benchmarks/fish_simulator.py                 # about a minute
    python benchmarks/fish_simulator.py --arenas 128    # the batch a trainer uses

A fish-step is one slot of one arena advanced by one step with observation, reward, automatic resets and statistics,
dead slots included. Rates are per second of CPU time of this process, one thread, the median of several rounds.
The original reached 8,220 fish-steps/s per core with 18 inputs and 65,196 with 11 (published figures, other machine).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from fish_loop import LoopSea
from machine import commit, describe

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fish.reference import ReferenceFish, ReferenceSea

from marlab.fish.envs.frame import Scene, paint
from marlab.fish.measure.ceiling import ceiling, doomed_mask
from marlab.fish.measure.policies import play, sidestep
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.world import FishWorld

FISH, ROUNDS, ROUND_S = 25, 5, 1.5
ORIGINAL = {18: 8220, 11: 65196}


def batched(inputs: int, arenas: int) -> float:
    """Fish-steps per CPU-second of `FishWorld`, random actions made beforehand."""
    cfg = SeaConfig(num_fish=FISH, include_neighbor_features=inputs == 18, density_penalty_coef=0.04 * (inputs == 18))
    world = FishWorld(cfg, arenas)
    actions = torch.randint(0, 5, (64, arenas, FISH))
    rates = []
    for _ in range(ROUNDS + 1):
        steps, start = 0, time.process_time()
        while time.process_time() - start < ROUND_S:
            world.step(actions[steps % 64])
            steps += 1
        rates.append(steps * arenas * FISH / (time.process_time() - start))
    return statistics.median(rates[1:])  # the first round warms up


def loop(kind: str, inputs: int) -> float:
    """Fish-steps per CPU-second of a plain loop over whole episodes."""
    rates = []
    for seed in range(2):
        state, _ = seeded_reset([seed], SeaConfig(), FISH)
        rows = torch.stack(state[:4], dim=-1)[0].double().tolist()
        predator = [float(value[0]) for value in state.predator]
        if kind == "numpy":
            sea: LoopSea | ReferenceSea = LoopSea(rows, predator, inputs == 18)
        else:
            fish = [ReferenceFish(*row) for row in rows]
            sea = ReferenceSea(fish, *predator, with_neighbours=inputs == 18, density_coef=0.04)
        actions = torch.randint(0, 5, (500, FISH), generator=torch.Generator().manual_seed(seed)).tolist()
        start = time.process_time()
        for row in actions:
            sea.step(row)
        rates.append(500 * FISH / (time.process_time() - start))
    return statistics.mean(rates)


def check_same_rules() -> None:
    """The two loops must agree, or the comparison means nothing."""
    state, _ = seeded_reset([0], SeaConfig(), FISH)
    rows, predator = torch.stack(state[:4], dim=-1)[0].double().tolist(), [float(v[0]) for v in state.predator]
    slow, quick = LoopSea(rows, predator), ReferenceSea([ReferenceFish(*r) for r in rows], *predator, density_coef=0.04)
    actions = torch.randint(0, 5, (100, FISH), generator=torch.Generator().manual_seed(0)).tolist()
    for row in actions:
        (a, seen_a), (b, seen_b) = slow.step(row), quick.step(row)
        living = [view for view in seen_b if view is not None]
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b), atol=1e-6, rtol=0)
        torch.testing.assert_close(torch.tensor([v.tolist() for v in seen_a]), torch.tensor(living), atol=1e-5, rtol=0)


def seconds(work, repeats: int = 3) -> float:  # type: ignore[no-untyped-def]
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arenas", type=int, default=256)
    arenas = parser.parse_args().arenas
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(describe(), "commit", commit())
    print(f"{FISH} fish, batched: {arenas} arenas, v32 settings, per CPU-second of one thread\n")
    check_same_rules()
    heads = ("inputs", "batched", "loop, NumPy pairs", "ratio", "loop, bare floats", "ratio", "to the original")
    print("{:>6} {:>12} {:>18} {:>6} {:>18} {:>6} {:>16}".format(*heads))
    for inputs in (18, 11):
        ours, pairs, floats = batched(inputs, arenas), loop("numpy", inputs), loop("floats", inputs)
        row = (inputs, ours, pairs, ours / pairs, floats, ours / floats, ours / ORIGINAL[inputs])
        print("{:>6} {:>12,.0f} {:>18,.0f} {:>6.0f} {:>18,.0f} {:>6.0f} {:>16.0f}".format(*row))

    cfg = SeaConfig(num_fish=96)
    state, _ = seeded_reset(list(range(10)), cfg)
    net = torch.nn.Sequential(
        torch.nn.Linear(18, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 5)
    )
    probe = seconds(lambda: play(state, lambda obs: net(obs).argmax(-1), cfg))
    rate = 10 * 96 * 500 / probe
    print(f"\nprobe 10 x 96 x 500 steps, 64-64 network, 18 inputs: {probe:.2f} s = {rate:,.0f} fish-steps/s")
    print(f"  (the original: 1,558 fish-steps/s, ratio {rate / 1558:.0f})")
    one, five = (seconds(lambda k=k: doomed_mask(state, k)) for k in (1, 5))
    print(
        f"doomed of 10 x 96, k = 1 / 5: {one:.3f} / {five:.3f} s; ceiling: {seconds(lambda: ceiling(state), 1):.1f} s"
    )
    scenes: list[Scene] = []
    play(state, sidestep, cfg, 50, lambda s: scenes.append(Scene.of(s)))
    print(f"frames of 800 px, 96 fish: {50 / seconds(lambda: [paint(scene) for scene in scenes]):.0f} per second")


if __name__ == "__main__":
    main()
