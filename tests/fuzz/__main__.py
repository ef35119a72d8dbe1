"""Throw damaged and hostile input at the program, and count what does not end in one sentence.

    python -m tests.fuzz [--count 10000] [--seed 0] [--families lines ...] [--only 17]

Ends with the count and exit code 0, or with the failures and 1. `--only` repeats one case and shows all that is known.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

import torch

from tests.fuzz.families import FAMILIES, case, prepare
from tests.fuzz.guard import run_case
from tests.fuzz.tripwires import tripwires


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--only", type=int, default=None)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args(argv)
    share, rest = divmod(args.count, len(args.families))
    ends: Counter[str] = Counter()
    places: Counter[str] = Counter()
    slow: list[tuple[float, str]] = []
    torch.set_num_threads(1)
    prepare()
    begun = time.monotonic()
    with tripwires():
        for place, family in enumerate(args.families):
            count, before = share + (place < rest), ends.copy()
            for number in [args.only] if args.only is not None else range(args.first, args.first + count):
                start = time.monotonic()
                ended = run_case(case(family, args.seed, number))
                ends[ended.kind] += 1
                slow.append((time.monotonic() - start, f"{family} {number}: {ended.case.told[:120]!r}"))
                if ended.kind == "failed":
                    fault = ended.why.strip().splitlines()[-1][:160]
                    places[fault] += 1
                    if places[fault] <= 2:
                        print(f"--- {family} {number} (seed {args.seed})\n{ended.why}", file=sys.stderr, flush=True)
                elif args.only is not None:
                    print(ended.case.told, ended.kind, ended.why, sep="\n")
            these = ends - before
            print(f"{family}: {these.total():,} cases, {these['failed']:,} tracebacks", flush=True)
    for fault, times in places.most_common():
        print(f"{times:5d} x {fault}")
    for seconds, told in sorted(slow, reverse=True)[:5]:
        print(f"slowest: {seconds:.1f} s, {told}")
    total = sum(ends.values())
    told = ", ".join(f"{ends[kind]:,} {kind}" for kind in ("refused", "done", "began"))
    print(
        f"{total:,} cases, {ends['failed']:,} tracebacks ({told}; {time.monotonic() - begun:.0f} s, seed {args.seed})"
    )
    return 1 if ends["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
