"""Speed of the vector market beside the simulator's fast mode: world-days per second, and where the time goes.

    python benchmarks/market_vector.py                      # one core, beside the simulator where it is installed
    python benchmarks/market_vector.py --device cuda --worlds 16384 65536 --no-simulator
    python benchmarks/market_vector.py --mixed --seats "rule W" --worlds 512 --compare 3 --no-simulator

Worlds of 3 x 4 factories and 50 days, or of 2 to 4 levels with 3 to 8 factories in one batch; all rules are on.
A step is a day of one world. On a CPU both sides are measured in CPU seconds of one core, so that other work on the
machine does not count; on a GPU in seconds.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from machine import commit, describe

from marlab.market.vector.builtin import Seated
from marlab.market.vector.clones import load
from marlab.market.vector.generate import generate, generate_like
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES, OFFER, Moves
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Policy, Rows
from marlab.market.vector.setup import make_setup
from marlab.market.vector.sync_random import SyncRandom

LEVELS, WIDE, DAYS = 3, 4, 50
CONFIGS = 4096
"""Different configs; larger batches repeat them, with play of their own."""
CLONES = "clones"
SEATS = ("Random", "Random and SyncRandom", "SyncRandom", "rule W", CLONES)
AGENTS = {"Random": ("RandomStdAgent",), "SyncRandom": ("SyncRandomStdAgent",)}
AGENTS["rule W"] = ('marlab.market.agent.agent:LitaAgentHRL(mode="heuristic")',)
AGENTS[CLONES] = load().names
AGENTS["Random and SyncRandom"] = AGENTS["Random"] + AGENTS["SyncRandom"]


class Twice(RuleW):
    """Rule W that plays the answers of arrays and counts where those of C differ."""

    differ = total = 0

    def answer(self, market: Market, rows: Rows) -> tuple[Moves, torch.Tensor]:
        code, self._native = self._native, None
        plain, places = super().answer(market, rows)
        self._native = code
        quick, others = super().answer(market, rows)
        a, b = (torch.stack(moves)[:, at.argsort()] for moves, at in ((plain, places), (quick, others)))
        differ = (a[0] != b[0]) | ((a[0] == OFFER) & (a[1:] != b[1:]).any(0))
        self.differ, self.total = self.differ + int(differ.sum()), self.total + len(places)
        return plain, places


class Clock:
    """Seconds by part; the device has done its work when a part ends."""

    def __init__(self, device: torch.device) -> None:
        self.parts: dict[str, float] = defaultdict(float)
        self._wait: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else lambda: None
        self._now = time.perf_counter if device.type == "cuda" else time.process_time

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        started = self._now()
        yield
        self._wait()
        self.parts[name] += self._now() - started


def vector(
    seats: str,
    worlds: int,
    days: int,
    device: torch.device,
    seconds: float = float("inf"),
    quick: bool = True,
    mixed: bool = False,
) -> tuple[float, dict[str, float], int]:
    """World-days per second, the share of each part, and the days played: no more are begun after `seconds`."""
    market, generator = market_of(worlds, device, mixed), torch.Generator(device).manual_seed(0)
    setup = market.setup
    kind = torch.zeros_like(setup.lines)
    others: dict[int, Policy] = {}
    if seats == CLONES:  # all experts of the pack that comes with the package, a network for every factory
        names, places = load().names, torch.arange(setup.lines.numel(), device=device)
        kind = kind + 1
        others[1] = load().policies(market, (places % len(names)).view(kind.shape), generator)
    elif seats != "Random":
        kind[:, :, 1::2] = 1
        kind[:, :, ::2] = 0 if seats == "Random and SyncRandom" else 1
        others[1] = RuleW(market, quick=quick) if seats == "rule W" else SyncRandom(generator)
    policy = Seated(market, kind, others, generator)
    play_day(market, policy, Clock(device))  # everything is loaded and allocated
    clock, played = Clock(device), 0
    while played < days and sum(clock.parts.values()) < seconds:
        play_day(market, policy, clock)
        played += 1
    total = sum(clock.parts.values())
    return worlds * played / total, {name: spent / total for name, spent in clock.parts.items()}, played


def market_of(worlds: int, device: torch.device, mixed: bool = False) -> Market:
    """Worlds of 3 x 4 factories and 50 days; `mixed`: of all shapes."""
    drawn, draw = min(worlds, CONFIGS), np.random.default_rng(0)
    shape = (np.full(drawn, LEVELS), np.full((drawn, LEVELS), WIDE), np.full(drawn, DAYS))
    configs = generate(drawn, draw, days=(DAYS, DAYS)) if mixed else generate_like(*shape, draw)
    setup = make_setup(configs, torch.float32, device)
    return Market(setup.select(torch.arange(worlds, device=device) % drawn))


def compared(worlds: int, days: int, device: torch.device, mixed: bool) -> str:
    """Rule W in C beside the arrays, decision for decision."""
    market = market_of(worlds, device, mixed)
    rule = Twice(market, quick=True)
    policy = Seated(market, torch.ones_like(market.setup.lines), {1: rule}, None)
    for _ in range(days):
        play_day(market, policy, Clock(device))
    told = "equal" if not rule.differ else f"{rule.differ:,} differ"
    return f"rule W in C and as arrays: {rule.total:,} decisions of {worlds} worlds, {days} days: {told}"


def play_day(market: Market, policy: Seated, clock: Clock) -> None:
    with clock.part("mornings"):
        market.open_day()
        policy.open(market)
    for _ in range(HALVES):
        with clock.part("agents"):
            moves = policy(market)
        with clock.part("rounds"):
            market.move(moves)
    policy.close(market)
    with clock.part("signing"):
        market.books.sign(market.threads)
    with clock.part("evenings"):
        market.close_day()


def simulator(seats: str, days: int) -> float:
    """World-days per CPU second of the simulator in its fast mode."""
    from marlab.market.simulator.worlds import WorldSpec, playing

    agents = (AGENTS[seats] * LEVELS * WIDE)[: LEVELS * WIDE]
    levels = tuple(level for level in range(LEVELS) for _ in range(WIDE))
    with playing(WorldSpec("bench", 1, 2, days, levels, agents, (False,) * len(agents))) as world:
        started = time.process_time()
        world.run()
        return days / (time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--worlds", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--days", type=int, default=DAYS - 1)
    parser.add_argument("--seats", nargs="+", choices=SEATS, default=list(SEATS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further day after these")
    parser.add_argument("--mixed", action="store_true", help="2 to 4 levels, 3 to 8 factories a level, in one batch")
    parser.add_argument("--arrays", action="store_true", help="rule W as arrays, not in C")
    parser.add_argument("--compare", type=int, default=0, help="days on which rule W in C is compared with the arrays")
    parser.add_argument("--no-simulator", dest="simulator", action="store_false")
    asked = parser.parse_args()
    if asked.mixed and asked.simulator:
        parser.error("--mixed has no worlds of the simulator beside it; add --no-simulator")
    device = torch.device(asked.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    print(describe())
    shape = "2 to 4 levels of 3 to 8" if asked.mixed else f"{LEVELS} x {WIDE}"
    print(f"commit {commit()}; {shape} factories, {asked.days} of {DAYS} days, float32, {device}")
    for seats in asked.seats:
        reference = simulator(seats, DAYS) if asked.simulator else None
        if reference is not None:
            print(f"{seats}: simulator {reference:.1f} world-days per CPU second", flush=True)
        for worlds in asked.worlds:
            rate, parts, days = vector(seats, worlds, asked.days, device, asked.seconds, not asked.arrays, asked.mixed)
            ratio = f", {rate / reference:.0f} times the simulator" if reference is not None else ""
            split = ", ".join(f"{name} {share:.0%}" for name, share in parts.items())
            print(f"{seats}: {worlds} worlds, {days} days, {rate:,.0f} world-days/s{ratio} ({split})", flush=True)
    if asked.compare:
        print(compared(min(asked.worlds), asked.compare, device, asked.mixed), flush=True)


if __name__ == "__main__":
    main()
