"""How good are the tests? Faults are put into the core modules one at a time; good tests catch them.

    python -m tests.mutants [--count 240] [--seed 0] [--modules fish/sea/rewards.py ...] [--minutes 90]
    python -m tests.mutants --again FILE     # only the survivors that an earlier call printed, after tests were added

Faults that change nothing (tests/mutants/equivalent.txt, judged by hand) are left out and do not count.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.core import CORE, draw, equivalents, survivors
from tests.mutants.judge import Judged, judge_all

GOAL = 0.95


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--count", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modules", nargs="*", choices=CORE, default=list(CORE))
    parser.add_argument("--minutes", type=float, default=90.0)
    parser.add_argument("--again", type=Path, default=None)
    args = parser.parse_args(argv)
    deadline = time.monotonic() + 60 * args.minutes
    same = equivalents()
    judged: list[Judged] = []
    left_out = 0
    chosen = draw(args.count, args.seed, tuple(args.modules)) if args.again is None else survivors(args.again)
    for module, drawn in chosen.items():
        faults = [fault for fault in drawn if fault.name not in same]
        left_out += len(drawn) - len(faults)
        caught = tried = 0
        for result in judge_all(module, CORE[module], faults):
            judged.append(result)
            tried, caught = tried + 1, caught + (result.verdict != "survived")
            if result.verdict == "survived":
                print(f"  survived, line {result.fault.line}: {result.fault.name}", flush=True)
            if time.monotonic() > deadline:
                break
        print(f"{module}: {caught} of {tried} caught", flush=True)
        if time.monotonic() > deadline:
            print(f"stopped after {args.minutes:g} minutes")
            break
    caught = sum(result.verdict != "survived" for result in judged)
    share = caught / len(judged) if judged else 0.0
    print(
        f"{caught} of {len(judged)} faults caught ({share:.1%}); {left_out} equivalent ones left out, seed {args.seed}"
    )
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
