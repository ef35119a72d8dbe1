"""Are there better options of rule W? CMA-ES over all of them at once in the vector market, clones around.

    python benchmarks/market_rule_search.py --generations 20 --candidates 32 --repeats 4 --real 120 --workers 8
    python benchmarks/market_rule_search.py --generations 0 --start '{"hold": 12}'     # only compared

Every candidate plays the same selling seats of markets that no other comparison uses. At the end the options at the
centre of the search are compared with the rule in fresh seats, and with `--real SECONDS` in worlds of the simulator,
in markets of their own. Needs `pip install cmaes`.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe

from marlab.lab.config import from_dict, to_dict
from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.market.fidelity.plan import FidelityConfig, Seat, seats_of
from marlab.market.fidelity.real import play_task
from marlab.market.fidelity.report import mean
from marlab.market.fidelity.search import play_candidates, search
from marlab.market.rules.bargain import RuleOptions
from marlab.market.vector.clones import load
from marlab.market.vector.configs import Configs
from marlab.market.vector.generate import generate_like

FIRST = 900
"""Number of the first market of the search; the fresh ones come after them."""


def drawn(seats: list[Seat], seed: int) -> Configs:
    """Markets by the generator of the vector market, one for each seat; no simulator is needed."""
    levels = np.array([len(seat.sizes) for seat in seats])
    sizes = np.zeros((len(seats), int(levels.max())), np.int64)
    for row, seat in zip(sizes, seats):
        row[: len(seat.sizes)] = seat.sizes
    days = np.array([seat.days for seat in seats])
    return generate_like(levels, sizes, days, np.random.default_rng(seed))


def changed(options: RuleOptions) -> dict[str, Any]:
    """Options that are not the rule's own."""
    usual = to_dict(RuleOptions())
    return {name: value for name, value in to_dict(options).items() if value != usual[name]}


def in_the_simulator(agents: dict[str, str], seconds: float, workers: int) -> list[tuple[Seat, float]]:
    """Seats and by how much `found` did better than `rule` in them, as many as so many seconds allow."""
    seats = seats_of(FidelityConfig(configs=60, first_config=FIRST + 600))
    jobs = [
        Task(f"{i} {name}", (seat.world(agent).to_dict(), seat.place), time_limit_s=300.0)
        for i, seat in enumerate(seats) for name, agent in agents.items()
    ]  # fmt: skip
    ends, scores = time.time() + seconds, {}
    for result in run_tasks(play_task, jobs, EngineConfig("local", workers), stop=lambda: time.time() > ends):
        if result.ok:
            scores[result.key] = result.value
        else:
            print(f"failed: {result.key} {result.error[-200:]}")
    both = [i for i in range(len(seats)) if f"{i} rule" in scores and f"{i} found" in scores]
    return [(seats[i], scores[f"{i} found"] - scores[f"{i} rule"]) for i in both]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=20)
    parser.add_argument("--candidates", type=int, default=32)
    parser.add_argument("--configs", type=int, default=12, help="markets of a generation, four seats each")
    parser.add_argument("--repeats", type=int, default=1, help="plays of each seat by each candidate")
    parser.add_argument("--start", type=json.loads, default={}, help="options to begin with that are not the rule's")
    parser.add_argument("--sigma", type=float, default=0.2, help="how far candidates lie from them at first")
    parser.add_argument("--fresh", type=int, default=8, help="plays of each fresh seat in the comparison at the end")
    parser.add_argument("--days", type=int, default=50)
    parser.add_argument("--clones", type=Path, default=None)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--minutes", type=float, default=600.0, help="no new generation after this")
    parser.add_argument("--real", type=float, default=0.0, help="seconds of worlds of the simulator at the end")
    parser.add_argument("--workers", type=int, default=2)
    flags = parser.parse_args()
    print(describe())
    began, device, pack = time.time(), torch.device(flags.device), load(flags.clones)
    config = FidelityConfig(configs=flags.configs, days=flags.days, first_config=FIRST, repeats=flags.repeats)
    begin, seats = from_dict(RuleOptions, flags.start, "--start"), seats_of(config)
    best = begin
    ends, clock = began + 60 * flags.minutes, [began]

    def out_of_time() -> bool:
        """Whether another generation as long as the latest one would end too late."""
        clock.append(time.time())
        return 2 * clock[-1] - clock[-2] > ends

    for step in search(
        config, drawn(seats, 1), pack, device, flags.generations, flags.candidates, out_of_time,
        begin, flags.sigma,
    ):  # fmt: skip
        best = step.centre
        print(
            f"[{time.time() - began:5.0f} s] {step.number:3d}  all candidates {step.usual:+.4f}, "
            f"the best of them {step.gain}, centre {changed(best)}", flush=True,
        )  # fmt: skip
    print(f"centre of the search: {changed(best)}")
    if flags.fresh:
        fresh = FidelityConfig(configs=2 * flags.configs, days=flags.days, first_config=FIRST + 300, repeats=1)
        others = seats_of(fresh)
        gains = play_candidates([best], others, drawn(others, 2), pack, 5, device, repeats=flags.fresh)[0]
        markets = np.array([seat.config for seat in others])
        for position in ("first", "middle"):
            here = np.array([seat.position == position for seat in others])
            print(
                f"in {here.sum()} fresh seats of the {position} level: {mean(gains[here], markets[here])}", flush=True
            )
    ours = "LitaAgentHRL(mode=heuristic"
    agents = {"rule": f"{ours})", "found": f"{ours}, rule={changed(best)})"}
    if flags.real > 0:
        real = in_the_simulator(agents, flags.real, flags.workers)
        for position in ("first", "middle"):
            rows = [(gain, seat.config) for seat, gain in real if seat.position == position]
            if len(rows) > 1:
                values, numbers = (np.array(part) for part in zip(*rows))
                print(f"in the simulator, {position} level, {len(rows)} seats: {mean(values, numbers)}")
    print(f'marlab market fidelity --sellers "rule={agents["rule"]}" "found={agents["found"]}"')


if __name__ == "__main__":
    main()
