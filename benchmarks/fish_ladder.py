"""What the scripted policies reach, and what is possible at best, on held-out arenas.

    python benchmarks/fish_ladder.py                 # 200 x 96 and 400 x 25, fixed rules, under a minute
    python benchmarks/fish_ladder.py --compat        # with the original's rules

Each mean comes with its 95 % interval over episodes; `of possible` is its share of the ceiling's lower bound.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import torch
from machine import commit, describe

from marlab.fish.measure.ceiling import ceiling
from marlab.fish.measure.policies import SCRIPTED, play, scripted
from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig
from marlab.fish.sea.reset import seeded_reset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compat", action="store_true")
    parser.add_argument("--seed", type=int, default=4242, help="base of the arena seeds")
    args = parser.parse_args()
    torch.set_num_threads(1)
    cfg = SeaConfig(include_neighbor_features=False, **(COMPAT_SWITCHES if args.compat else {}))
    print(describe(), "commit", commit())
    print(f"rules: {'compat' if args.compat else 'fixed'}, arena seeds from {args.seed}")
    for arenas, fish in ((200, 96), (400, 25)):
        seeds = [int(seed) for seed in np.random.default_rng(args.seed).integers(0, 2**31 - 1, size=arenas)]
        start, _ = seeded_reset(seeds, cfg, fish)
        best = ceiling(start)
        print(f"\n{arenas} episodes x {fish} fish: possible at best {best.lower:.4f} to {best.upper:.4f}")
        print(f"{'policy':>10} {'avg final':>18} {'worst':>6} {'early100':>9} {'step one':>9} {'of possible':>12}")
        for name in SCRIPTED:
            played = play(start, scripted(name, torch.Generator().manual_seed(0)), cfg)
            survival, deaths = played.survival.double(), played.final.death_step
            half = 1.96 * float(survival.std()) / math.sqrt(arenas)
            early = float(((deaths > 0) & (deaths < 100)).double().mean())
            one = float((deaths == 1).double().mean())
            mean = float(survival.mean())
            print(
                f"{name:>10} {mean:>9.4f} +- {half:.4f} {float(survival.min()):>6.3f} {early:>9.4f} {one:>8.2%} "
                f"{mean / best.lower:>11.2%}"
            )


if __name__ == "__main__":
    main()
