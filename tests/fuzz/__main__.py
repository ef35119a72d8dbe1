"""Throw damaged files, and lines that are right but for one thing, at the program; count what does not end well.

    python -m tests.fuzz [--files 20000] [--lines 10000] [--seed 0] [--formats logs ppo ...] [--only 17]

Ends with the count and exit code 0, or with the failures and 1. What is damaged once more is chosen by coverage: a file
that made lines of the program run which no file before it had reached. `--only` shows all that is known of one case.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hypothesis
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import marlab
from tests.fuzz import configs
from tests.fuzz.formats import Format, fault, formats
from tests.fuzz.guard import Case, Ended, run_case
from tests.fuzz.tripwires import tripwires

HOME = str(Path(marlab.__file__).parent)
FRESH = 30
"""How many of the files that reached something new are damaged further, the latest ones."""


class Coverage:
    """Lines of the program that ran."""

    def __init__(self) -> None:
        self.known: set[tuple[CodeType, int]] = set()
        self.new = False

    def run(self, case: Case) -> Ended:
        """Run it and see whether it reached something new."""
        self.new = False
        sys.settrace(self._call)
        try:
            return run_case(case)
        finally:
            sys.settrace(None)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(HOME) else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        place = (frame.f_code, frame.f_lineno)
        if place not in self.known:
            self.known.add(place)
            self.new = True
        return self._line


def damaged_files(name: str, format: Format, count: int, seed: int, only: int | None) -> Iterator[tuple[Case, Ended]]:
    """Cases of one format; they follow from the seed, as long as the program and its files are the same."""
    rng, coverage = random.Random(f"{name} {seed}"), Coverage()
    known: dict[str, list[bytes]] = {file: [(format.source() / file).read_bytes()] for file in format.files()}
    for number in range(count):
        file = rng.choice(list(known))
        place, content = fault(file, rng.choice((known[file][0], *known[file][-FRESH:])), rng)
        case = format.case(name, number, place, content, rng)
        ended = coverage.run(case)
        if coverage.new and content is not None and len(content) < 1 << 20:
            known[file].append(content)
        if only in (None, number):
            yield case, ended


def drawn_lines(count: int, seed: int, only: int | None, told: Callable[[Case, Ended], None]) -> None:
    """Cases that hypothesis draws; as none of them fails for hypothesis, it has nothing to shrink, and all are run."""
    numbers = iter(range(count))

    @hypothesis.seed(seed)
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.one_of(configs.settings(), configs.lines()))
    def each(drawn: tuple[str, dict[str, bytes | None]]) -> None:
        case = configs.case(next(numbers), drawn)
        if only in (None, case.number):
            told(case, run_case(case))

    each()


class Count:
    """How the cases ended."""

    def __init__(self, show: bool) -> None:
        self.show = show
        self.ends: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def add(self, case: Case, ended: Ended) -> None:
        self.ends[ended.kind] += 1
        if ended.kind == "failed":
            why = ended.why.strip().splitlines()[-1][:160]
            self.faults[why] += 1
            if self.faults[why] <= 2:
                print(f"--- {case.family} {case.number}: {case.told}\n{ended.why}", file=sys.stderr, flush=True)
        elif self.show:
            print(case.told, ended.kind, ended.why, sep="\n")

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Says how the cases of this part ended."""
        before, begun = self.ends.copy(), time.monotonic()
        yield
        these, seconds = self.ends - before, time.monotonic() - begun
        print(f"{name}: {these.total():,} cases, {these['failed']:,} tracebacks ({seconds:.0f} s)", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", nargs="*", default=None)
    parser.add_argument("--only", type=int, default=None)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    chosen = {name: each for name, each in formats().items() if args.formats is None or name in args.formats}
    for each in chosen.values():
        each.source()
    configs.case(0, ("", {}))
    count, shares = Count(args.only is not None), Counter(list(chosen)[i % len(chosen)] for i in range(args.files))
    with tripwires():
        for name, share in shares.items():
            with count.part(name):
                for case, ended in damaged_files(name, chosen[name], share, args.seed, args.only):
                    count.add(case, ended)
        if args.lines:
            with count.part("lines"):
                drawn_lines(args.lines, args.seed, args.only, count.add)
    for why, times in count.faults.most_common():
        print(f"{times:5d} x {why}")
    ends = count.ends
    told = ", ".join(f"{ends[kind]:,} {kind}" for kind in ("refused", "done", "began"))
    print(f"{ends.total():,} cases, {ends['failed']:,} tracebacks ({told}; seed {args.seed})")
    return 1 if ends["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
