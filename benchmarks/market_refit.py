"""Do clones that were fitted again explain what habits earn in real worlds?

    python benchmarks/market_refit.py play FOLDER --habits HABITS.json --markets 60 --workers 5 --seconds 450
    python benchmarks/market_refit.py parts FOLDER --habits HABITS.json    # what each part of the habits earns
    python benchmarks/market_refit.py predict FOLDER --habits HABITS.json --clones FILE --repeats 4
    python benchmarks/market_refit.py likelihood FOLDER --clones OLD.npz NEW.npz
    python benchmarks/market_refit.py judge FOLDER --habits NEW.json --base OLD.json --first 900 --markets 100

`play`: three seats of ours in worlds of the simulator. Every market is played four times, and a seat has the rule, all
of the learnt habits, some parts of them, and the other parts, in an order of its own; so every part is there twice and
is not there twice. Worlds are recorded as `marlab market clone --recorded` reads them. `predict` plays the same seats
in the vector market, among clones, and tells who buys how much. Markets from number 3000 on are used for nothing else.
`judge` plays a market twice, with one seat at the first level and one at a middle one: each has the habits in one world
and those of the base in the other.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from machine import describe

from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.lab.runs.files import replacing, write_json
from marlab.lab.stats import mean_interval
from marlab.market.agent.layers import load_habits
from marlab.market.clones.examples import examples
from marlab.market.clones.fit import losses
from marlab.market.clones.worlds import play_task
from marlab.market.fidelity.sellers import VARIANTS, population
from marlab.market.habits import evolve
from marlab.market.online.settings import EXPERTS
from marlab.market.rules.habits import ALL, DIRECT, FIRST, MIDDLE, POSITIONS, Learnt
from marlab.market.simulator.worlds import WorldSpec
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.clones import ClonePack, load
from marlab.market.vector.configs import join
from marlab.market.vector.market import Market
from marlab.market.vector.replay import Recorded, from_bytes, read
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.setup import buyer_calls, make_setup

SHAPES = ((4, 4, 4), (3, 3, 3, 3)) * 4 + ((6, 6),)
"""Factories by level, in turn."""
PARTS = {
    "worth": ("accept", "shadow", "least"),
    "knowing": ("taken", "offers", "few", "leaving", "seldom", "patient", "yield"),
    "lots": ("large", "low_lot", "last_lot", "lot_"),
    "prices": ("price_",),
    "waiting": ("hold", "cheap", "large_request", "small_request"),
    "opening": ("opening", "small_lot", "small_price", "small_step", "loss"),
    "days": ("day_",),
}
"""Parts of the habits, by how their names begin; the first that fits counts."""
THE_RULE = Learnt()
OURS = "ours"
PLAYS = 4
"""Worlds of a market."""
STRAY = 0.1
"""Share of the habits that are drawn anew in seats with some parts, in every second market."""


def part_of(name: str) -> int:
    """The part a habit belongs to."""
    if name == "large_request":
        return list(PARTS).index("waiting")
    return next(i for i, begins in enumerate(PARTS.values()) if name.startswith(begins))


PART = np.array([part_of(name) for name in ALL])


class Seat(NamedTuple):
    """One of our seats in one world."""

    world: str
    market: int
    place: int  # counted over all factories, level by level
    position: int  # place in `POSITIONS`
    parts: tuple[int, ...]  # 1 where a part of the learnt habits is played
    habits: tuple[float, ...]


class World(NamedTuple):
    """A world of the simulator; the agents of our seats are None."""

    name: str
    seeds: tuple[int, int]
    sizes: tuple[int, ...]
    agents: tuple[str | None, ...]
    seats: tuple[Seat, ...]


def planned(first: int, markets: int, learnt: Learnt, base: Learnt = THE_RULE, plays: int = PLAYS) -> list[World]:
    """All worlds, market by market."""
    return [world for number in range(first, first + markets) for world in _of_market(number, learnt, base, plays)]


def _of_market(number: int, learnt: Learnt, base: Learnt, plays: int) -> list[World]:
    """The worlds of a market; with two plays a seat has the base's habits and the learnt ones, with four also parts."""
    rng = np.random.default_rng([21, number])
    parts = plays == PLAYS
    sizes = SHAPES[number % (len(SHAPES) if parts else 2)]
    seeds = int(rng.integers(2**31)), int(rng.integers(2**31))
    around = [EXPERTS[i] for i in rng.permutation(len(EXPERTS))]
    places = [int(place) for place in rng.permutation(sizes[0])[: 3 if len(sizes) == 2 else 2 if parts else 1]]
    if len(sizes) > 2:
        places.append(int(rng.integers(sizes[0], sum(sizes[:-1]))))
    worlds: list[list[Seat]] = [[] for _ in range(plays)]
    for place in places:
        name = MIDDLE if place >= sizes[0] else FIRST if len(sizes) > 2 else DIRECT
        full, usual = (np.array(getattr(each, FIRST if name == DIRECT else name)) for each in (learnt, base))
        some = (rng.permutation(len(PARTS)) < len(PARTS) // 2 + rng.integers(2)).astype(int)
        ways = [0 * some, 0 * some + 1, some, 1 - some]
        for play_number, way in zip(rng.permutation(plays).tolist(), ways):
            habits = np.where(way[PART] > 0, full, usual)
            stray = evolve.draw(habits, 1, 1.0, STRAY, rng)[0]
            if number % 2 and 0 < way.sum() < len(PARTS):
                habits = stray
            row = Seat(
                f"habits-{number}-{play_number}", number, place, POSITIONS.index(name), tuple(way.tolist()),
                tuple(habits.tolist()),
            )  # fmt: skip
            worlds[play_number].append(row)
    agents = tuple(None if place in places else name for place, name in enumerate(around))
    return [World(seats[0].world, seeds, sizes, agents, tuple(seats)) for seats in worlds]


# --- the simulator ------------------------------------------------------------------------------------------------


def spec_of(world: World, folder: Path, days: int) -> WorldSpec:
    """The world with files of habits for our seats."""
    agents = list(world.agents)
    for seat in world.seats:
        file = folder / f"{world.name}-{seat.place}.json"
        row = {POSITIONS[seat.position]: seat.habits}
        write_json(file, Learnt(**row).to_json())
        agents[seat.place] = f"marlab.market.agent.agent:LitaAgentHRL(mode=learned, weights={file})"
    levels = tuple(level for level, size in enumerate(world.sizes) for _ in range(size))
    names = tuple(str(name) for name in agents)
    return WorldSpec(world.name, *world.seeds, days, levels, names, (True,) * len(levels))


def simulate(args: argparse.Namespace, worlds: list[World]) -> None:
    """Play what is missing, as far as the time allows."""
    began, recorded, habits = time.time(), args.folder / "recorded", args.folder / "habits"
    for folder in (recorded, habits):
        folder.mkdir(parents=True, exist_ok=True)
    missing = [world for world in worlds if not (recorded / f"{world.name}.npz").exists()]
    specs = {world.name: spec_of(world, habits.resolve(), args.days) for world in missing}
    tasks = [Task(name, (spec.to_dict(),), time_limit_s=600.0) for name, spec in specs.items()]
    done = 0
    for result in run_tasks(
        play_task, tasks, EngineConfig("local", args.workers), stop=lambda: time.time() - began > args.seconds
    ):
        if not result.ok:
            print(f"{result.key} failed: {result.error.strip()[-200:]}", flush=True)
            continue
        with replacing(recorded / f"{result.key}.npz") as temporary:
            temporary.write_bytes(replace(from_bytes(result.value), mornings=np.zeros((0, 0, 0))).to_bytes())
        done += 1
        if done % 20 == 0:
            print(f"{done} worlds, {time.time() - began:.0f} s", flush=True)
    print(f"{done} worlds played, {time.time() - began:.0f} s", flush=True)


def recorded_worlds(args: argparse.Namespace, worlds: list[World]) -> list[tuple[World, Recorded]]:
    """Those that were played."""
    files = [(world, args.folder / "recorded" / f"{world.name}.npz") for world in worlds]
    return [(world, read(file)) for world, file in files if file.exists()]


# --- what the parts earn ------------------------------------------------------------------------------------------


def by_seat(seats: Sequence[Seat], position: int, plays: int) -> list[list[int]]:
    """Places of the seats at a position that were played in all worlds of their market, seat by seat."""
    groups: dict[tuple[int, int], list[int]] = {}
    for i, seat in enumerate(seats):
        if seat.position == position:
            groups.setdefault((seat.market, seat.place), []).append(i)
    return [members for members in groups.values() if len(members) == plays]


def pairs(seats: Sequence[Seat], scores: np.ndarray, groups: list[list[int]]) -> np.ndarray:
    """What all of the learnt habits earn more than none of them, seat by seat."""
    played = [{sum(seats[i].parts): scores[i] for i in members} for members in groups]
    return np.array([each[len(PARTS)] - each[0] for each in played])


def effects(seats: Sequence[Seat], scores: np.ndarray, groups: list[list[int]]) -> list[tuple[float, float]]:
    """What each part earns, and its standard error: differences within the worlds of a seat, explained by the parts."""
    x = np.array([[seats[i].parts for i in members] for members in groups], float)  # [seats, plays, parts]
    y = scores[np.array(groups)]
    flat, values = (x - x.mean(1, keepdims=True)).reshape(-1, len(PARTS)), (y - y.mean(1, keepdims=True)).ravel()
    inverse = np.linalg.inv(flat.T @ flat)
    found = inverse @ (flat.T @ values)
    noise = ((values - flat @ found) ** 2).sum() / (len(values) - len(groups) - len(PARTS))
    return list(zip(found.tolist(), np.sqrt(np.diag(inverse) * noise).tolist()))


def tell(name: str, seats: Sequence[Seat], scores: np.ndarray, plays: int) -> None:
    """What the habits earn at the two levels, and what their parts do."""
    for position in (FIRST, MIDDLE):
        groups = by_seat(seats, POSITIONS.index(position), plays)
        if len(groups) < len(PARTS):
            continue
        value, low, high = mean_interval(pairs(seats, scores, groups).tolist())
        told = f"{name}, {position}: {value:+.4f} [{low:+.4f}, {high:+.4f}], {len(groups)} seats"
        if plays == PLAYS:
            parts = effects(seats, scores, groups)
            told += "; " + ", ".join(f"{part} {mean:+.4f} ± {error:.4f}" for part, (mean, error) in zip(PARTS, parts))
        print(told, flush=True)


class Sold(NamedTuple):
    """What became of one of our seats in one world."""

    score: float
    units: dict[str, float]  # sold to every buyer, by its name


def in_the_simulator(played: Sequence[tuple[World, Recorded]]) -> tuple[list[Seat], list[Sold]]:
    """Our seats of these worlds, and what became of them."""
    seats, sold = [], []
    for world, record in played:
        contracts = record.tables["contracts"]
        for seat in world.seats:
            mine = contracts["seller"] == seat.place
            units = np.bincount(contracts["buyer"][mine], contracts["quantity"][mine], len(world.agents))
            seats.append(seat)
            sold.append(Sold(float(record.scores[seat.place]), _by_name(world, seat, units[_buyers(world, seat)])))
    return seats, sold


def _buyers(world: World, seat: Seat) -> slice:
    wide = world.sizes[0]
    return slice((seat.place // wide + 1) * wide, (seat.place // wide + 2) * wide)


def _by_name(world: World, seat: Seat, units: np.ndarray) -> dict[str, float]:
    names = [name or OURS for name in world.agents[_buyers(world, seat)]]
    return {name: float(units[[other == name for other in names]].mean()) for name in names}


def tell_buyers(name: str, seats: Sequence[Seat], sold: Sequence[Sold]) -> None:
    """Units that each kind of buyer takes from a seller at the first level: of the rule, of the learnt habits."""
    at_first = [(seat, each) for seat, each in zip(seats, sold) if seat.position == POSITIONS.index(FIRST)]
    for kind in (*EXPERTS, OURS):
        rule, learnt = (
            [each.units[kind] for seat, each in at_first if kind in each.units and sum(seat.parts) == count]
            for count in (0, len(PARTS))
        )
        if rule and learnt:
            print(f"{name}, {kind}: {np.mean(rule):.1f}, {np.mean(learnt):.1f} ({len(rule)} seats)", flush=True)


# --- the vector market --------------------------------------------------------------------------------------------


def in_the_vector_market(
    played: Sequence[tuple[World, Recorded]], clones: Path | None, repeats: int, seed: int
) -> list[Sold]:
    """The same seats in the same markets, clones of the same agents around: means of so many plays."""
    pack = load(clones)
    found: dict[str, list[Sold]] = {}
    for sizes in dict.fromkeys(world.sizes for world, _ in played):
        some = [pair for pair in played if pair[0].sizes == sizes]
        each = _sold(some, sizes, pack, repeats, seed)
        found |= {world.name: mine for (world, _), mine in zip(some, each)}
    return [each for world, _ in played for each in found[world.name]]


def _sold(
    played: Sequence[tuple[World, Recorded]], sizes: tuple[int, ...], pack: ClonePack, repeats: int, seed: int
) -> list[list[Sold]]:
    levels, wide = len(sizes), max(sizes)
    configs = join([record.config for _, record in played]).take(np.repeat(np.arange(len(played)), repeats))
    market = Market(make_setup(configs, torch.float32, torch.device("cpu")))
    who = np.array([[-1 if n is None else EXPERTS.index(n) for n in world.agents] for world, _ in played])
    who = np.repeat(who.reshape(-1, levels, wide), repeats, 0)
    number, rows = np.full(who.shape, -1), []
    for w, (world, _) in enumerate(played):
        for seat in world.seats:
            number[w * repeats : (w + 1) * repeats, seat.place // wide, seat.place % wide] = len(rows)
            rows.append(seat.habits)
    generator = torch.Generator().manual_seed(seed)
    seated = population(pack, market, EXPERTS, torch.as_tensor(who), generator)
    mine: Any = torch.as_tensor(number)
    rule = RuleW(market, chosen=mine >= 0, quick=True)
    rule.follow(torch.tensor(rows), mine.clamp(min=0))
    kind = torch.where(mine >= 0, VARIANTS, seated.kind)
    everybody = Seated(market, kind, {**seated.policies, VARIANTS: rule}, generator)
    units = torch.zeros((len(who), levels - 1, wide, wide))  # by seller and buyer
    while bool(market.playing.any()):
        play(market, everybody, days=1)
        signed = market.threads.agreed_units.float()
        for level in range(levels - 1):
            units[:, level] += signed[:, level].mT if buyer_calls(level, levels) else signed[:, level]
    scores = market.scores().double().numpy()

    def sold(w: int, world: World, seat: Seat) -> Sold:
        here, level, place = slice(w * repeats, (w + 1) * repeats), seat.place // wide, seat.place % wide
        taken = units[here, level, place].mean(0).numpy()
        return Sold(float(scores[here, level, place].mean()), _by_name(world, seat, taken))

    return [[sold(w, world, seat) for seat in world.seats] for w, (world, _) in enumerate(played)]


# --- the command --------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("play", "parts", "predict", "likelihood", "judge"))
    parser.add_argument("folder", type=Path, help="worlds are recorded here")
    parser.add_argument("--habits", type=Path, help="learnt habits: the parts are theirs")
    parser.add_argument("--base", type=Path, help="habits that are judged beside; default: the rule")
    parser.add_argument("--first", type=int, default=3000, help="number of the first market")
    parser.add_argument("--markets", type=int, default=60)
    parser.add_argument("--days", type=int, default=50)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="no world is begun after them")
    parser.add_argument("--clones", type=Path, nargs="*", default=[], help="files of clones; default: the package's")
    parser.add_argument("--repeats", type=int, default=4, help="plays of each world in the vector market")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(describe())
    torch.set_num_threads(1)
    if args.what == "likelihood":
        likelihood(args)
        return
    base, plays = THE_RULE if args.base is None else load_habits(args.base), 2 if args.what == "judge" else PLAYS
    worlds = planned(args.first, args.markets, load_habits(args.habits), base, plays)
    if args.what in ("play", "judge"):
        simulate(args, worlds)
    played = recorded_worlds(args, worlds)
    seats, real = in_the_simulator(played)
    found = {"simulator": real}
    if args.what == "predict":
        for clones in args.clones or [None]:
            name = str(clones or "clones of the package")
            found[name] = in_the_vector_market(played, clones, args.repeats, args.seed)
    for name, sold in found.items():
        tell(name, seats, np.array([each.score for each in sold]), plays)
    if args.what in ("parts", "predict"):
        for name, sold in found.items():
            tell_buyers(name, seats, sold)


def likelihood(args: argparse.Namespace) -> None:
    """How well clones predict the experts of recorded worlds."""
    files = sorted((args.folder / "recorded").glob("*.npz"))
    for clones in args.clones or [None]:
        pack = load(clones)
        data = examples([read(file) for file in files], pack.names)
        found = losses(pack.weights, [data[name] for name in pack.names], torch.device("cpu"))
        told = {name: round(float(row[-1]), 3) for name, row in zip(pack.names, found)}
        print(f"{clones or 'clones of the package'}: {found[:, -1].mean():.4f} nats a decision; {json.dumps(told)}")


if __name__ == "__main__":
    main()
