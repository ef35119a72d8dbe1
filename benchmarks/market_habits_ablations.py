"""What the parts of learnt habits are worth: searches from the rule that differ in one respect, with equal budgets.

    python benchmarks/market_habits_ablations.py learn FOLDER --device cuda --seconds 400
    python benchmarks/market_habits_ablations.py judge FOLDER --device cuda --seconds 200 --shipped
    python benchmarks/market_habits_ablations.py table FOLDER

All searches among clones share every batch of the vector market, each in markets of its own. Then all of them, and with
`--shipped` the parts of the habits that come with the package, play the same seats of other markets, among clones,
beside the rule. What is done is kept: `judge` adds batches to those that are there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from machine import describe
from numpy.typing import NDArray

from marlab.lab.runs.rng import Rngs
from marlab.lab.stats import mean_interval
from marlab.market.agent.layers import find_learned, load_habits
from marlab.market.habits import evolve
from marlab.market.habits.evolve import USUAL, Array, Moments
from marlab.market.habits.ground import CENTRE, DRAWN, THE_RULE, Batch, plays_of, sell
from marlab.market.habits.trainer import gains
from marlab.market.online.settings import EXPERTS
from marlab.market.rules.habits import ALL, FIRST, MIDDLE, NUMBERS, OPTIONS
from marlab.market.vector.builtin import BUILTIN
from marlab.market.vector.clones import load

LEVELS = (FIRST, MIDDLE)
SHAPES = ((4, 4, 4), (3, 3, 3, 3))
"""In turn; with two levels nothing was found to learn."""
BUILT_IN = tuple(BUILTIN)
REACH, MEMORY = 0.8, 0.75
"""As the habits of the package were made."""


def _are(*names: str) -> NDArray[np.bool_]:
    return np.array([name in names for name in ALL])


class Variant(NamedTuple):
    """What a search may change, whether all levels share one row, and who sits around."""

    drawn: NDArray[np.bool_]
    one_set: bool = False
    opponents: Sequence[str] = EXPERTS


PARTS = {
    "options": _are(*OPTIONS),
    "numbers": _are(*NUMBERS),
    "options and numbers": _are(*OPTIONS, *NUMBERS),
    "leaning": ~_are(*OPTIONS, *NUMBERS),
    "all": np.ones(len(ALL), bool),
}
VARIANTS = {
    **{name: Variant(part) for name, part in PARTS.items() if name != "leaning"},
    "all, one set for all levels": Variant(PARTS["all"], one_set=True),
    "all, among built-in agents": Variant(PARTS["all"], opponents=BUILT_IN),
}


class Search:
    """The centres of all variants, [levels, H] each, and what is known of each."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.file, self.seed, self.steps = folder / f"centres.{seed}.npz", seed, 0
        self.centres = {name: np.stack([USUAL] * len(LEVELS)) for name in VARIANTS}
        self.known = {name: [evolve.nothing() for _ in LEVELS] for name in VARIANTS}
        if self.file.exists():
            with np.load(self.file) as stored:
                self.steps = int(stored["steps"])
                for name in VARIANTS:
                    self.centres[name] = stored[name]
                    rows, seats = stored[f"{name} products"].astype(float), stored[f"{name} seats"]
                    self.known[name] = [Moments(row, float(count)) for row, count in zip(rows, seats)]

    def save(self) -> None:
        """Centres after a step, and what they rest on."""
        values: dict[str, Any] = {"steps": self.steps, **self.centres}
        for name, known in self.known.items():
            values[f"{name} products"] = np.stack([each.products for each in known]).astype(np.float32)
            values[f"{name} seats"] = np.array([each.seats for each in known])
        np.savez_compressed(self.file, **values)

    def step(self, found: dict[str, list[Moments]]) -> None:
        """Every variant moves."""
        for name, variant in VARIANTS.items():
            new = found[name]
            if variant.one_set:
                new = [new[0].plus(new[1])] * len(LEVELS)
            self.known[name] = [known.plus(more, MEMORY) for known, more in zip(self.known[name], new)]
            for level, known in enumerate(self.known[name]):
                self.centres[name][level], promised = evolve.step(self.centres[name][level], evolve.fit(known), REACH)
                print(f"  {name}, {LEVELS[level]}: {known.seats:.0f} seats, promises {promised:+.4f}", flush=True)
        self.steps += 1
        self.save()


class Clock:
    """Whether there is time for another batch as long as the longest."""

    def __init__(self, seconds: float) -> None:
        self.began = self.latest = time.time()
        self.ends, self.longest = self.began + seconds, 0.0

    def over(self) -> bool:
        return time.time() + 1.1 * self.longest > self.ends

    def tick(self) -> str:
        now = time.time()
        took, self.latest = now - self.latest, now
        self.longest = max(self.longest, took)
        return f"[{now - self.began:4.0f} s, {took:.0f} s]"


def learn(flags: argparse.Namespace) -> None:
    """Steps of all variants, until time is over; a step is kept when it is complete."""
    search, clock, pack = Search(flags.folder, flags.seed), Clock(flags.seconds), load(None)
    while search.steps < flags.steps:
        found = {name: [evolve.nothing() for _ in LEVELS] for name in VARIANTS}
        for turn, sizes in enumerate(SHAPES):
            for opponents in (EXPERTS, BUILT_IN):
                names = [name for name, variant in VARIANTS.items() if variant.opponents == opponents]
                if clock.over():
                    return
                number = (search.steps * len(SHAPES) + turn) * 2 + (opponents == BUILT_IN)
                markets = flags.markets * len(names)
                seed = Rngs(flags.seed).draw_seed(f"habits ablation {number}") % 2**62

                def drawing(position: int, count: int, rng: np.random.Generator, names: list[str] = names) -> Array:
                    plays, parts = plays_of(count, flags.draws), []
                    for name in names:
                        centre, drawn = search.centres[name][position], VARIANTS[name].drawn
                        part = evolve.draw(centre, count // len(names), 1.0, flags.share, rng)
                        parts.append(np.where(drawn, part, centre))
                        parts[-1][plays[: len(part)] == CENTRE] = centre
                    habits = np.concatenate(parts)
                    habits[plays == THE_RULE] = USUAL
                    return habits

                sold = sell(
                    Batch(sizes, markets, flags.draws, flags.days, seed), pack, opponents, drawing, flags.device
                )
                told, whose = [], sold.market // 2 // flags.markets
                for place, name in enumerate(names):
                    for level in range(len(LEVELS)):
                        here = (whose == place) & (sold.position == level)
                        some = here & (sold.plays == DRAWN)
                        these = evolve.moments(sold.habits[some], sold.score[some], sold.market[some])
                        found[name][level] = found[name][level].plus(these)
                        mine = type(sold)(*(part[here] for part in sold))
                        told.append(f"{name}, {LEVELS[level]} {gains(mine, level).mean():+.4f}")
                print(f"{clock.tick()} step {search.steps} {sizes}: centre less rule " + "; ".join(told), flush=True)
        search.step(found)


def candidates_of(flags: argparse.Namespace) -> dict[str, Array]:
    """Everybody who is judged: [levels, H] each."""
    found = dict(Search(flags.folder, flags.seed).centres)
    if flags.shipped:
        row = np.array(load_habits(find_learned(None)).middle)
        for name, part in PARTS.items():
            found[f"shipped, {name}"] = np.stack([USUAL, np.where(part, row, USUAL)])
    return found


def judge(flags: argparse.Namespace) -> None:
    """Batches of fresh markets among clones in which every candidate and the rule have the same seats."""
    candidates, clock, pack = candidates_of(flags), Clock(flags.seconds), load(None)
    names = list(candidates)
    for number in range(flags.batches):
        file = flags.folder / f"judged.{flags.seed}.{number}.npz"
        if file.exists():
            continue
        if clock.over():
            return

        def drawing(position: int, count: int, rng: np.random.Generator) -> Array:
            rows = np.stack([USUAL, *(candidates[name][position] for name in names)])
            return np.tile(rows, (count // len(rows), 1))

        seed = Rngs(flags.seed).draw_seed(f"habits ablation judged {number}") % 2**62
        sizes, worlds = SHAPES[number % len(SHAPES)], len(names) + 1
        batch = Batch(sizes, flags.markets, worlds, flags.days, seed)
        sold = sell(batch, pack, EXPERTS, drawing, flags.device)
        scores = sold.score.reshape(len(LEVELS), flags.markets, worlds).astype(np.float32)
        np.savez_compressed(file, names=np.array(names), scores=scores, levels=len(sizes))
        less = (scores[:, :, 1:] - scores[:, :, :1]).mean(1)
        print(clock.tick(), sizes, dict(zip(names, less.T.round(4).tolist())), flush=True)


def table(folder: Path) -> None:
    """Every candidate less the rule, Student's 95 % over markets, and less the search that may change everything."""
    less: dict[str, list[Array]] = {}
    for file in sorted(folder.glob("judged.*.npz")):
        with np.load(file) as stored:
            scores = stored["scores"].astype(float)
            for place, name in enumerate(stored["names"].tolist()):
                less.setdefault(name, []).append(scores[:, :, place + 1] - scores[:, :, 0])

    def cell(values: Array) -> str:
        mean, low, high = mean_interval(values.tolist())
        return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"

    print("| habits | seats | first level, less the rule | middle levels, less the rule | less `all`: first | middle |")
    print("|---|---|---|---|---|---|")
    for name, parts in less.items():
        mine, base = np.concatenate(parts, 1), np.concatenate(less["all"], 1)
        beside = ["", ""] if mine.shape != base.shape or name == "all" else [cell(row) for row in mine - base]
        print(f"| {name} | {mine.shape[1]} | " + " | ".join([*(cell(row) for row in mine), *beside]) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("learn", "judge", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--markets", type=int, default=1024, help="of a batch; learning: of each variant")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--share", type=float, default=1.0, help="of the habits that a search may change")
    parser.add_argument("--days", type=int, default=50)
    parser.add_argument("--batches", type=int, default=4, help="of the judge")
    parser.add_argument("--shipped", action="store_true", help="judge the parts of the habits of the package too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="no batch is begun that would end later")
    parser.add_argument("--device", type=torch.device, default="cpu")
    flags = parser.parse_args()
    if flags.what == "table":
        table(flags.folder)
        return
    torch.set_num_threads(1)
    flags.folder.mkdir(parents=True, exist_ok=True)
    print(describe())
    (learn if flags.what == "learn" else judge)(flags)


if __name__ == "__main__":
    main()
