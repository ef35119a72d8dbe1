"""What is it worth to reckon with followers? The same planners with and without that hypothesis, among the same teams.

    python benchmarks/hunt_followers.py hop_4x4 "with=hop_4x4?followers=0.5" --teams tune 3EXPL --runs 40 --steps 480

Weights, starts and random numbers are the same; a planner differs by what it may believe of others. For every team:
the first episode, the second to fifth, and the episodes that end in the last half of the steps, as mean reward with
95 % intervals over runs; and the paired difference of the last to the first agent. `tune` and `scored` name the
families of the guide on hunt eval (--scored-seed). Needs torch and numpy only; --json keeps what was found, as it goes.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hunt_protocol import HELD_OUT_SEED
from numpy.typing import NDArray

from marlab.hunt.evaluate.agents import find_agent
from marlab.hunt.evaluate.families import TUNE, scored
from marlab.hunt.evaluate.play import Cell, Starts, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import team
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.lab.device import choose_device
from marlab.lab.runs.rng import Rngs
from marlab.lab.stats import mean_interval

PARTS = ("first", "second to fifth", "last half")


class OutOfTime(Exception):
    """The batch would not be done in time."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", nargs="+", help="NAME=FILE?SETTINGS; the last is compared with all others")
    parser.add_argument("--teams", nargs="+", default=["tune"])
    parser.add_argument("--scored-seed", type=int, default=39747)
    parser.add_argument("--game", default="msh_4x4")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--steps", type=int, default=480)
    parser.add_argument("--together", type=int, default=100, help="cells of a batch")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=1e9, help="no batch goes on that would end later")
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    families = {"tune": list(TUNE), "scored": [one.name for one in scored(arguments.scored_seed)]}
    teams = [name for word in arguments.teams for name in families.get(word, [word])]
    agents = [find_agent(text) for text in arguments.agents]
    game = make_game(
        game_config(arguments.game), Rngs(HELD_OUT_SEED).torch("maps"), device=choose_device(arguments.device)
    )
    cells = [Cell(agent, team(name)) for name in teams for agent in agents]
    found: dict[str, dict[str, Any]] = {}
    until = time.monotonic() + arguments.seconds
    for k in range(0, len(cells), arguments.together):
        some = cells[k : k + arguments.together]
        try:
            measured = measure(game, some, arguments.runs, arguments.steps, until)
        except OutOfTime:
            print("no time left", flush=True)
            break
        for cell, one in zip(some, measured):
            found.setdefault(cell.scenario.name, {})[cell.agent.name] = one
        if arguments.json is not None:
            arguments.json.write_text(json.dumps({**vars(arguments), "json": None, "found": found}))
        for name in dict.fromkeys(cell.scenario.name for cell in some):
            print_team(name, found[name])


def measure(game: Any, cells: list[Cell], runs: int, steps: int, until: float) -> list[dict[str, list[float]]]:
    """What the focal players of some cells earn: run by run, in each part; and by episode."""
    began, done = time.monotonic(), 0

    def tick(count: int) -> None:
        nonlocal done
        done += count
        spent = time.monotonic() - began
        if done >= 40 and time.monotonic() + spent / done * (steps - done) > until:
            raise OutOfTime

    plan = seat_all(game, cells, runs, {})
    chance = torch.Generator(device=game.device).manual_seed(HELD_OUT_SEED)
    stream = play_stream(game, plan, Starts(game, runs, HELD_OUT_SEED), steps, chance, tick)
    focal = plan.focal.cpu()[stream.game]
    reward = (stream.reward.double() * focal).sum(1).numpy()
    cell, run, number = stream.game.numpy() // runs, stream.game.numpy() % runs, stream.episode.numpy()
    inside = (number == 0, (number > 0) & (number < 5), stream.end.numpy() > steps / 2)
    rows = []
    for c in range(len(cells)):
        row: dict[str, list[float]] = {}
        for part, where in zip(PARTS, inside):
            here = where & (cell == c)
            count = np.bincount(run[here], minlength=runs)
            sums = np.bincount(run[here], reward[here], minlength=runs)
            row[part] = np.where(count > 0, sums / np.maximum(count, 1), np.nan).tolist()
        mine = cell == c
        sums, counts = np.bincount(number[mine], reward[mine]), np.bincount(number[mine])
        row["by episode"] = (sums / counts)[counts >= runs / 2].tolist()
        rows.append(row)
    print(f"{len(cells)} cells: {time.monotonic() - began:.0f} s", flush=True)
    return rows


def interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and 95 % interval over the runs that have any."""
    known = values[np.isfinite(values)]
    mean, low, high = mean_interval(known.tolist())
    return mean, low, high


def print_team(name: str, by_agent: dict[str, Any]) -> None:
    *others, last = by_agent
    for agent, one in by_agent.items():
        text = "; ".join("{} {:.2f} [{:.2f}, {:.2f}]".format(part, *interval(np.array(one[part]))) for part in PARTS)
        print(f"{name}, {agent}: {text}")
    for other in others:
        pairs = [np.array(by_agent[last][part]) - np.array(by_agent[other][part]) for part in PARTS]
        text = "; ".join("{} {:+.2f} [{:+.2f}, {:+.2f}]".format(p, *interval(d)) for p, d in zip(PARTS, pairs))
        print(f"  {last} less {other}: {text}", flush=True)


if __name__ == "__main__":
    main()
