"""The protocol of `hunt eval` where only torch and numpy are installed: who comes nearest to the best response?

    python benchmarks/hunt_protocol.py --scored-seed 7 --agents hop_4x4 ppo=rivals/ppo_4x4.pt \\
        --populations other=rivals/population_4x4.pt --device cuda --seconds 420 --output-dir protocol
    python benchmarks/hunt_protocol.py --tiny --scored-seed 7 --agents NS --output-dir protocol   # a minute on a CPU

`marlab hunt eval --parts scored` measures the same cell by cell, each the same to the bit in any company; here all
scenarios of some agents (--together) are one batch, which is what a GPU is good at, and scores agree within the
intervals. Best responses are solved on the CPU meanwhile (--cores processes). What is in the output directory already
is not measured again. --estimate says how long agents take. The table is printed and kept in table.md; the first agent
is compared with all others.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.hunt.evaluate.agents import Agent, find_agent
from marlab.hunt.evaluate.families import KINDS, scored, tagged
from marlab.hunt.evaluate.play import Cell, Starts, play_stream, seat_all
from marlab.hunt.evaluate.proximity import HEADER, Played, gap, proximity_rows, summarise
from marlab.hunt.evaluate.scenarios import Scenario
from marlab.hunt.evaluate.scores import scores_of
from marlab.hunt.exact.best_response import reference_values, solvable
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.characters import parse_character
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.runs.rng import Rngs

HELD_OUT_SEED = 20_260_303
"""Starts and obstacle maps that no training uses."""
SCRIPTS = ("NS", "NH", "EXPL", "WAIT(5)")
"""Set the reference where no best response is solved and no PPO response was trained."""
BUILT_FOR = ("exploiter", "reciprocator")
"""Kinds because of which settings of planners at play were made (followers, loyalty)."""
GROUPS = {
    "Where the first episode cannot suffice": ("lasting", "exploiter", "follower"),
    "Where it can": ("reciprocator", "waiting", "switching", "noisy", "population"),
    "Without exploiters and reciprocators, for whom planners were given settings": tuple(set(KINDS) - set(BUILT_FOR)),
}
"""Kinds of scenarios that are also summed up by themselves."""
CHUNK = 25
"""Starts that one process solves at a time."""
WARM_STEPS = 40
"""After so many steps it is clear how long a batch takes."""


def main() -> None:
    arguments = parse()
    torch.set_num_threads(1)
    until = time.monotonic() + arguments.seconds
    folder: Path = arguments.output_dir
    folder.mkdir(parents=True, exist_ok=True)
    met = {agent.name: agent for agent in map(find_agent, arguments.populations)}
    asked_for = [*scored(arguments.scored_seed, list(met)), *(tagged(text, "lasting") for text in arguments.teams)]
    scenarios = [s for s in asked_for if s.name in (arguments.only or [s.name])]
    game = make_game(
        game_config(arguments.game), Rngs(HELD_OUT_SEED).torch("maps"), device=choose_device(arguments.device)
    )
    trained = dict(text.split("=", 1) for text in arguments.references)  # team -> file of its PPO response
    with ProcessPoolExecutor(arguments.cores, get_context("spawn")) as pool:
        solving = {} if arguments.agents_only else solve(pool, arguments, scenarios, list(met), folder)
        scripts = () if arguments.agents_only else SCRIPTS
        asked = [text for text in (*scripts, *arguments.agents) if missing(folder, name_of(text), scenarios)]
        for k in range(0, 0 if arguments.exact_only else len(asked), arguments.together):
            batch = {name_of(text): find_agent(text) for text in asked[k : k + arguments.together]}
            for first in range(0, len(scenarios), arguments.at_once):
                play(batch, scenarios[first : first + arguments.at_once], game, arguments, met, until)
        for name, file in trained.items():  # a response plays among its own team alone
            own = [s for s in scenarios if s.name == name]
            if missing(folder, f"response-{name}", own):
                play({f"response-{name}": find_agent(file)}, own, game, arguments, met, until)
        exact = collect(solving, folder, until)
    if arguments.agents_only:
        return
    text = table(folder, scenarios, exact, arguments)
    (folder / "table.md").write_text(text)
    print(text)


def name_of(text: str) -> str:
    return text.split("=")[0]


def missing(folder: Path, name: str, scenarios: list[Scenario]) -> list[Scenario]:
    """The scenarios that an agent has not played yet."""
    known = read(folder / f"{name}.json")
    return [one for one in scenarios if one.name not in known]


class OutOfTime(Exception):
    """The batch would not be done in time."""


def play(
    agents: dict[str, Agent],
    scenarios: list[Scenario],
    game: Any,
    arguments: argparse.Namespace,
    met: dict[str, Agent],
    until: float,
) -> None:
    """All scenarios of some agents in one batch: what the focal player earns in each run; episodes of the last half
    count. A file for each agent; a batch that would end too late is left after some steps."""
    runs, steps, began, folder = arguments.runs, arguments.steps, time.monotonic(), arguments.output_dir
    lacking = {one.name for name in agents for one in missing(folder, name, scenarios)}
    scenarios = [one for one in scenarios if one.name in lacking]
    if not scenarios:
        return
    done = 0

    def tick(count: int) -> None:
        nonlocal done
        done += count
        if done == WARM_STEPS:
            spent = time.monotonic() - began
            expected = spent / done * steps
            print(f"{', '.join(agents)}: {expected:.0f} s expected for {len(scenarios)} scenarios", flush=True)
            if arguments.estimate or time.monotonic() + expected - spent > until:
                raise OutOfTime

    if time.monotonic() > until - 20:
        return
    plan = seat_all(game, [Cell(agent, one) for agent in agents.values() for one in scenarios], runs, met)
    chance = torch.Generator(device=game.device).manual_seed(HELD_OUT_SEED)
    try:
        stream = play_stream(game, plan, Starts(game, runs, HELD_OUT_SEED), steps, chance, tick)
    except OutOfTime:
        return
    found = scores_of(plan, stream, steps, steps // 2)
    for k, name in enumerate(agents):
        mine = zip(scenarios, found[k * len(scenarios) :])
        kept = {
            scenario.name: {
                "mean": one.mean,
                "per_run": one.per_run.tolist(),
                "seeds": one.seeds.tolist(),
                "by_episode": one.by_episode.tolist(),
            }
            for scenario, one in mine
        }
        (folder / f"{name}.json").write_text(json.dumps({**read(folder / f"{name}.json"), **kept}))
    print(f"{', '.join(agents)}: {time.monotonic() - began:.0f} s", flush=True)


# --- best responses ---------------------------------------------------------------------------------------------------


def solve_some(game_name: str, names: tuple[str, ...], count: int, number: int) -> list[float]:
    """The best response's values in some starts; in a process of its own."""
    torch.set_num_threads(1)
    game = make_game(game_config(game_name), Rngs(HELD_OUT_SEED).torch("maps"))
    starts = game.reset(count, Rngs(HELD_OUT_SEED).torch(f"layouts {number}"))
    others = [parse_character(name) for name in names]
    values: list[float] = reference_values(game, starts, [others[0], *others]).tolist()
    return values


def solve(
    pool: ProcessPoolExecutor, arguments: argparse.Namespace, scenarios: list[Scenario], met: list[str], folder: Path
) -> dict[str, list[Future[list[float]]]]:
    """Begin to solve what is not known yet, some starts of every scenario in turn."""
    known = read(folder / "exact.json")
    config, size = game_config(arguments.game), min(CHUNK, arguments.layouts)
    wanted = []
    for scenario in scenarios:
        characters = scenario.characters(met)
        if characters is not None and solvable(characters, config):
            wanted += [] if sure(known.get(scenario.name), arguments.layouts) else [scenario]
    pending: dict[str, list[Future[list[float]]]] = {scenario.name: [] for scenario in wanted}
    for number in range(max(1, arguments.layouts // CHUNK)):
        for scenario in wanted:
            job = pool.submit(solve_some, arguments.game, scenario.background, size, number)
            pending[scenario.name].append(job)
    return pending


def sure(known: tuple[float, float, int] | None, layouts: int) -> bool:
    """Whether a best response's level needs no more starts: it has enough, or they hardly differ."""
    return known is not None and (known[2] >= layouts or known[1] < 0.005 * known[0])


def collect(
    pending: dict[str, list[Future[list[float]]]], folder: Path, until: float
) -> dict[str, tuple[float, float, int]]:
    """Scenario -> (mean, half of its interval, starts); what is not solved in time is left out."""
    known = read(folder / "exact.json")
    for name, jobs in pending.items():
        values: list[float] = []
        for job in jobs:
            left = until - time.monotonic() - 5
            if left <= 0 and not job.done():
                job.cancel()
                continue
            try:
                values += job.result(timeout=max(left, 0.1))
            except TimeoutError:
                job.cancel()
            except UserError:  # some start of these has too many situations to solve
                print(f"{name}: {CHUNK} starts less", flush=True)
        if len(values) > known.get(name, (0, 0, 0))[2]:
            half = 1.96 * float(np.std(values)) / max(1, len(values)) ** 0.5
            known[name] = (float(np.mean(values)), half, len(values))
            (folder / "exact.json").write_text(json.dumps(known))
    return known


# --- the table --------------------------------------------------------------------------------------------------------


def table(folder: Path, scenarios: list[Scenario], exact: dict[str, Any], arguments: argparse.Namespace) -> str:
    """Everything that was measured, as a page."""
    found = {path.stem: read(path) for path in sorted(folder.glob("*.json")) if path.stem != "exact"}
    asked = dict.fromkeys([*(name_of(text) for text in arguments.agents), *SCRIPTS])
    names = [n for n in asked if n in found]
    references: dict[str, tuple[str, float]] = {}
    for scenario in scenarios:
        name = scenario.name
        beside = [
            (who, one[name]["mean"])
            for who, one in found.items()
            if name in one and (who in SCRIPTS or who.startswith("response"))
        ]
        candidates = [("exact", exact[name][0])] if name in exact else beside
        if candidates:
            references[name] = max(candidates, key=lambda one: one[1])
    agents = {
        agent: {
            n: Played(*(np.array(found[agent][n][k]) for k in ("per_run", "seeds", "by_episode")), level)
            for n, (_, level) in references.items()
            if n in found[agent]
        }
        for agent in names
    }
    size = f"{arguments.runs} runs of {arguments.steps} steps"
    lines = [f"# {arguments.game}, scored seed {arguments.scored_seed}, {size}", ""]
    lines += _rows(HEADER, proximity_rows({agent: played for agent, played in agents.items() if played}))
    kinds = {scenario.name: scenario.tags[-1] for scenario in scenarios}
    for title, chosen in GROUPS.items():
        parts = {agent: {n: one for n, one in played.items() if kinds[n] in chosen} for agent, played in agents.items()}
        lines += ["", f"{title}:", "", *_rows(HEADER, proximity_rows({a: part for a, part in parts.items() if part}))]
    header = ["scenario", "kind", "reference", *names]
    rows = []
    for scenario in scenarios:
        if scenario.name not in references:
            continue
        who, level = references[scenario.name]
        cells = [_cell(agents[agent].get(scenario.name)) for agent in names]
        rows.append([scenario.name, scenario.tags[-1], f"{level:.2f} {who}", *cells])
    lines += ["", *_rows(header, rows), ""]
    if names and agents[names[0]]:
        for other in names[1:]:
            between = gap(agents[names[0]], agents[other])
            lines.append(f"{names[0]} less {other}: {between.value:+.3f} [{between.low:+.3f}, {between.high:+.3f}]")
    return "\n".join(lines) + "\n"


def _cell(played: Played | None) -> str:
    if played is None:
        return ""
    share, episodes = summarise({"": played}).mean, played.episodes_to_adapt
    return f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}], first {played.first:.2f} @{episodes or 'never'}"


def _rows(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows]]


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scored-seed", type=int, required=True)
    parser.add_argument("--game", default="msh_4x4")
    parser.add_argument(
        "--agents", nargs="+", default=["hop_4x4"], help="NAME=FILE; others are compared with the first"
    )
    parser.add_argument("--populations", nargs="*", default=[], help="NAME=FILE: trained players to meet")
    parser.add_argument("--teams", nargs="*", default=[], help="more teams of players with a lasting goal")
    parser.add_argument("--references", nargs="*", default=[], help="TEAM=FILE: PPO responses")
    parser.add_argument("--agents-only", action="store_true", help="play, and leave references and table to another")
    parser.add_argument("--together", type=int, default=3, help="agents of a batch")
    parser.add_argument("--only", nargs="*", default=[], help="these scenarios alone")
    parser.add_argument("--at-once", type=int, default=100, help="scenarios of a batch; few suit a CPU")
    parser.add_argument("--estimate", action="store_true", help="say how long batches take, and play none to its end")
    parser.add_argument("--exact-only", action="store_true", help="solve best responses, and leave playing to another")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--layouts", type=int, default=200)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop in time for this")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tiny", action="store_true", help="to see that it runs")
    parser.add_argument("--output-dir", type=Path, default=Path("protocol"))
    arguments = parser.parse_args()
    if arguments.tiny:
        arguments.runs, arguments.steps, arguments.layouts = 20, 140, 2
    return arguments


if __name__ == "__main__":
    main()
