"""What knowing the others is worth, exactly: on the usual boards next to nothing, on msh_far a quarter of all there is.

    python benchmarks/hunt_knowing.py --starts 200 --cores 4 [--seconds 300] [--output-dir knowing]

Of every case (a game, and what the other players may be) the mean over starts of the best response of somebody who is
told (known), who learns within the episode (believed), of a planner that averages over what they may be (planned) and
of one that reads the situation alone (prior), with 95 % intervals of the two gaps. See `marlab.hunt.exact.knowing`.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from marlab.hunt.exact.knowing import value_of_knowing
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.characters import parse_character
from marlab.lab.errors import UserError

SEED = 20_261_117
CASES = {  # name -> (game, for each other player: what it may be with which chance, share of the starts)
    "4x4, NS or NH among 2NH": ("msh_4x4", [{"NS": 0.5, "NH": 0.5}, {"NH": 1.0}, {"NH": 1.0}], 1.0),
    "8x8, NS or NH among 2NH": ("msh_8x8", [{"NS": 0.5, "NH": 0.5}, {"NH": 1.0}, {"NH": 1.0}], 0.25),
    "far, NS (1/4) or NH among 2NH": ("msh_far", [{"NS": 0.25, "NH": 0.75}, {"NH": 1.0}, {"NH": 1.0}], 1.0),
    "far, NS (1/2) or NH among 2NH": ("msh_far", [{"NS": 0.5, "NH": 0.5}, {"NH": 1.0}, {"NH": 1.0}], 1.0),
    "far, NS (2/3) or NH among 2NH": ("msh_far", [{"NS": 0.67, "NH": 0.33}, {"NH": 1.0}, {"NH": 1.0}], 1.0),
    "far, EXPL or NH among 2NH": ("msh_far", [{"EXPL": 0.5, "NH": 0.5}, {"NH": 1.0}, {"NH": 1.0}], 0.5),
    "far, NS or SWITCH(3) among 2NH": ("msh_far", [{"NS": 0.5, "SWITCH(3)": 0.5}, {"NH": 1.0}, {"NH": 1.0}], 0.25),
    "far, three times NS (1/4) or NH": ("msh_far", [{"NS": 0.25, "NH": 0.75}] * 3, 0.15),
}


def solve(name: str, number: int) -> tuple[float, float, float, float]:
    torch.set_num_threads(1)
    game_name, others, _ = CASES[name]
    game = make_game(game_config(game_name))
    start = game.reset(1, torch.Generator().manual_seed(SEED + number))
    me = [parse_character("NS")]  # not asked
    candidates = [me, *([parse_character(rule) for rule in one] for one in others)]
    found = value_of_knowing(game, start, candidates, [[1.0], *(list(one.values()) for one in others)])  # type: ignore[arg-type]
    return found.known, found.believed, found.planned, found.prior


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES), help="these alone")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop in time for this")
    parser.add_argument("--output-dir", type=Path, default=Path("knowing"))
    arguments = parser.parse_args()
    arguments.output_dir.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + arguments.seconds
    values: dict[str, list[tuple[float, ...]]] = {name: [] for name in CASES}
    with ProcessPoolExecutor(arguments.cores, get_context("spawn")) as pool:
        numbers = [(k, name) for name in arguments.cases for k in range(max(2, int(arguments.starts * CASES[name][2])))]
        jobs = {pool.submit(solve, name, k): name for k, name in sorted(numbers)}  # all cases grow together
        try:
            for job in as_completed(jobs, timeout=max(1.0, until - time.monotonic())):
                try:
                    values[jobs[job]].append(job.result())
                except UserError as error:  # a start with too many situations is left out and named
                    print(f"{jobs[job]}: a start less. {error}", flush=True)
        except TimeoutError:
            pool.shutdown(wait=False, cancel_futures=True)
        print(table(values))
        (arguments.output_dir / "knowing.json").write_text(json.dumps(values))


def table(values: dict[str, list[tuple[float, ...]]]) -> str:
    lines = [
        "| case | starts | known | believed | planned | prior | known - believed | believed - prior |",
        "|---" * 8 + "|",
    ]
    for name, rows in values.items():
        if len(rows) > 1:
            each = np.array(rows)
            means = " | ".join(f"{mean:.2f}" for mean in each.mean(0))
            gaps = [each[:, 0] - each[:, 1], each[:, 1] - each[:, 3]]
            shown = " | ".join(f"{gap.mean():.2f} ± {1.96 * gap.std() / len(gap) ** 0.5:.2f}" for gap in gaps)
            lines.append(f"| {name} | {len(rows)} | {means} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
