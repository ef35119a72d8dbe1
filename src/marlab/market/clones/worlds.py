"""The worlds that clones are fitted on: played here and kept in recorded/, or read from a folder."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np

from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.files import replacing
from marlab.lab.runs.run import Run
from marlab.market.clones.settings import SHAPE, CloneConfig
from marlab.market.simulator.experts import find_player
from marlab.market.simulator.worlds import WorldSpec
from marlab.market.vector.clones.pack import plain_name
from marlab.market.vector.replay import Recorded, read

FIT, VALIDATION, HELD_OUT = range(3)


def planned(config: CloneConfig) -> list[WorldSpec]:
    """The worlds to be played: shapes in turn, and who sits in them drawn so that everybody plays equally often."""
    draw = random.Random(f"clones {config.seed}")
    known = {plain_name(name) for name in config.population}
    everybody = [*config.population, *(name for name in config.experts if plain_name(name) not in known)]
    waiting: list[str] = []
    specs = []
    for number in range(config.worlds):
        levels, wide = (int(part) for part in _shape(config.shapes[number % len(config.shapes)]))
        while len(waiting) < levels * wide:
            waiting += draw.sample(everybody, len(everybody))
        agents, waiting = waiting[: levels * wide], waiting[levels * wide :]
        draw.shuffle(agents)
        processes = tuple(level for level in range(levels) for _ in range(wide))
        days = draw.randint(*config.days)
        seeds = (draw.randrange(2**31), draw.randrange(2**31))
        specs.append(
            WorldSpec(
                f"clone-{config.seed}-{number:04d}", *seeds, days, processes, tuple(agents), (True,) * len(agents)
            )
        )
    return specs


def _shape(text: str) -> tuple[str, ...]:
    found = SHAPE.fullmatch(text)
    assert found is not None  # the settings were checked
    return found.groups()


def play_task(spec: dict[str, object]) -> bytes:
    """The engine's task: one world of the simulator with everything that a replay needs."""
    from marlab.market.simulator.evidence import played

    return played(WorldSpec.from_dict(spec)).to_bytes()


def play(config: CloneConfig, run: Run, engine: EngineConfig, quiet: bool) -> None:
    """Play what is missing into recorded/; a world that fails is noted and left out."""
    folder = run.path / "recorded"
    folder.mkdir(exist_ok=True)
    specs = planned(config)
    for name in dict.fromkeys(name for spec in specs for name in spec.agents):
        find_player(name)
    waiting = [spec for spec in specs if not (folder / f"{spec.world_id}.npz").exists()]
    tasks = [Task(spec.world_id, (spec.to_dict(),), time_limit_s=config.world_timeout) for spec in waiting]
    done = len(specs) - len(waiting)
    with (
        Progress("playing", total=len(specs), unit="worlds", done=done, quiet=quiet) as bar,
        contextlib.closing(run_tasks(play_task, tasks, engine, stop=run.must_stop)) as results,
    ):
        for result in results:
            if result.ok:
                with replacing(folder / f"{result.key}.npz") as temporary:
                    temporary.write_bytes(result.value)
            else:
                why = (result.error.strip().splitlines() or [result.kind])[-1]
                run.log(f"world {result.key} failed ({result.kind}): {result.error[-2000:]}")
                bar.say(f"world {result.key} failed ({result.kind}: {why[:200]})")
            bar.advance(1, failures=0 if result.ok else 1)
    if run.must_stop() and any(not (folder / f"{spec.world_id}.npz").exists() for spec in specs):
        run.leave()


def read_all(folder: Path, experts: tuple[str, ...]) -> list[Recorded]:
    """The recorded worlds of a folder in the order of their names."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder, expected one with recorded worlds (.npz).")
    worlds = [read(path) for path in sorted(folder.glob("*.npz"))]
    if len(worlds) < 3:
        raise UserError(f"{folder} holds {len(worlds)} recorded worlds, expected at least 3.")
    nameless = [world.world_id for world in worlds if len(world.agents) != len(world.scores)]
    if nameless:
        raise UserError(f"The recorded world {nameless[0]} does not say who played; record it again.")
    seen = {name for world in worlds for name in world.agents}
    missing = [name for name in experts if name not in seen]
    if missing:
        raise UserError(f"{missing[0]} plays in none of the {len(worlds)} recorded worlds, which know {_some(seen)}.")
    return worlds


def _some(names: set[str]) -> str:
    return ", ".join(sorted(names))


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
