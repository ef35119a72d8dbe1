"""The worlds that clones are fitted on: played here and kept in worlds/, or read from a folder."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from marlab.lab.engine.tasks import EngineConfig, TaskResult
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.run import Run
from marlab.market.clones.settings import CloneConfig
from marlab.market.simulator.experts import find_player
from marlab.market.simulator.seating import Deck, processes_of, shape_of
from marlab.market.simulator.worlds import WorldSpec, play_worlds
from marlab.market.vector.clones.pack import plain_name
from marlab.market.vector.replay import Recorded, read_folder

FIT, VALIDATION, HELD_OUT = range(3)
WORLDS = "worlds"
"""Folder of a run for the worlds that it played."""


def planned(config: CloneConfig) -> list[WorldSpec]:
    """The worlds to be played: shapes in turn, and who sits in them drawn so that everybody plays equally often."""
    draw = random.Random(f"clones {config.seed}")
    known = {plain_name(name) for name in config.population}
    everybody = [*config.population, *(name for name in config.experts if plain_name(name) not in known)]
    deck, specs = Deck(everybody, draw), []
    for number in range(config.worlds):
        shape = shape_of(config.shapes[number % len(config.shapes)])
        assert shape is not None  # the settings were checked
        processes = processes_of([shape[1]] * shape[0])
        agents = deck.deal(len(processes))
        days = draw.randint(*config.days)
        seeds = (draw.randrange(2**31), draw.randrange(2**31))
        specs.append(
            WorldSpec(
                f"clone-{config.seed}-{number:04d}", *seeds, days, processes, tuple(agents), (True,) * len(agents)
            )
        )
    return specs


def play(config: CloneConfig, run: Run, engine: EngineConfig, quiet: bool) -> None:
    """Play what is missing into worlds/; a world that fails is noted and left out."""
    specs = planned(config)
    for name in dict.fromkeys(name for spec in specs for name in spec.agents):
        find_player(name)

    def failed(result: TaskResult, bar: Progress) -> None:
        why = (result.error.strip().splitlines() or [result.kind])[-1]
        run.log(f"world {result.key} failed ({result.kind}): {result.error[-2000:]}")
        bar.say(f"world {result.key} failed ({result.kind}: {why[:200]})")

    play_worlds(specs, run.path / WORLDS, engine, failed, run.must_stop, config.world_timeout, quiet)
    if run.must_stop() and any(not (run.path / WORLDS / f"{spec.world_id}.parquet").exists() for spec in specs):
        run.leave()


def read_all(folder: Path, experts: tuple[str, ...]) -> list[Recorded]:
    """The recorded worlds of a folder in the order of their names."""
    worlds = read_folder(folder)
    if len(worlds) < 3:
        raise UserError(f"{folder} holds {len(worlds)} recorded worlds, expected at least 3.")
    seen = {name for world in worlds for name in world.agents}
    missing = [name for name in experts if name not in seen]
    if missing:
        known = ", ".join(sorted(seen))
        raise UserError(f"{missing[0]} plays in none of the {len(worlds)} recorded worlds, which know {known}.")
    return worlds


def parts(count: int, config: CloneConfig, known: np.ndarray | None = None) -> np.ndarray:
    """[worlds]: what each world is for, FIT, VALIDATION or HELD_OUT; every part has one world at least.

    `known` [worlds]: those that the clones of the start were fitted on, so they are the last to judge a fit.
    """
    order = np.random.default_rng([config.seed, 17]).permutation(count)
    if known is not None:
        order = order[np.argsort(known[order], kind="stable")]
    held, checked = max(1, round(config.held_out * count)), max(1, round(config.validation * count))
    out = np.full(count, FIT)
    out[order[:held]], out[order[held : held + checked]] = HELD_OUT, VALIDATION
    return out
