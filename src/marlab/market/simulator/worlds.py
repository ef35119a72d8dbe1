"""Worlds of the SCML Standard league that can be played again, to the last contract, from a small record.

A `WorldSpec` says who sits where and which random numbers are drawn. `make_world` turns it into a world of the
simulator in its fast mode; `play` runs it to the end. Four things make a repetition exact: seeds of `random` and
`numpy.random`, a private generator for the draw that negmas makes once per elapsed second, no limits on wall-clock
time inside the world (a hung one is ended from outside), and PYTHONHASHSEED, which has to be set before Python starts:
agents iterate over sets of names. Tasks of the engine get it; `hash_seed()` tells what holds here.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from marlab.lab.engine.keeper import task_folder
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.files import replacing
from marlab.market.simulator.experts import find_player

MIN_FACTORIES, MAX_FACTORIES = 4, 6
"""Factories per level in worlds of official shape; more than six only if the experts need them."""
Settings = Literal["fast", "tables", "default"]
"""fast: nothing is kept by the simulator; tables: it keeps its own tables and negotiations, two times slower;
default: its own settings in everything, wall-clock limits included, as a reference for speed."""
_ENDLESS = dict.fromkeys(("time_limit", "neg_time_limit", "neg_step_time_limit", "neg_hidden_time_limit"), math.inf)
_SETTINGS: dict[Settings, dict[str, Any]] = {
    "fast": {"saved_details_level": 0, "sync_calls": True, **_ENDLESS},
    "tables": {"sync_calls": True, **_ENDLESS},
    "default": {},
}
_FORGIVING = {"ignore_agent_exceptions": True, "ignore_negotiation_exceptions": True}


@dataclass(frozen=True)
class WorldSpec:
    """One world: JSON-able, and enough to play it again. Factories are listed level by level."""

    world_id: str
    market_seed: int
    """Draws the market: costs, prices, exogenous contracts, opening balances. Worlds that share it can be compared."""
    seed: int
    """Draws everything that happens while the world is played."""
    n_steps: int
    """Days."""
    processes: tuple[int, ...]
    """The level of each factory, not decreasing."""
    agents: tuple[str, ...]
    """The class of the agent in each factory, by name or as module:Class, with its parameters: Name(key=value, ...)."""
    tracked: tuple[bool, ...]
    """Whether its decisions are recorded."""

    def __post_init__(self) -> None:
        sizes = {len(self.processes), len(self.agents), len(self.tracked)}
        if len(sizes) != 1:
            raise UserError(f"World {self.world_id} lists {sorted(sizes)} factories; its lists must be equally long.")
        levels, ordered = sorted(set(self.processes)), sorted(self.processes)
        if levels != list(range(self.n_processes)) or list(self.processes) != ordered:
            raise UserError(
                f"World {self.world_id} has processes {self.processes}, expected 0, ..., then 1, ..., in order."
            )
        if self.n_processes < 2:
            raise UserError(f"World {self.world_id} has one process; without a second one nobody negotiates.")
        if self.n_steps <= self.n_processes:
            raise UserError(f"World {self.world_id} has {self.n_steps} days, expected more than its processes.")

    @property
    def n_processes(self) -> int:
        """Levels of the supply chain."""
        return max(self.processes) + 1

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> WorldSpec:
        """The inverse of `to_dict`."""
        kept: dict[str, Any] = {f.name: values[f.name] for f in fields(cls)}
        kept |= {name: tuple(value) for name, value in kept.items() if isinstance(value, list)}
        return cls(**kept)


def hash_seed() -> int | None:
    """The PYTHONHASHSEED that this process was started with; None if it is random, so nothing can be repeated."""
    if not sys.flags.hash_randomization:
        return 0
    seed = os.environ.get("PYTHONHASHSEED", "random")
    return int(seed) if seed.isdigit() else None


def make_world(
    spec: WorldSpec,
    folder: Path,
    world_class: type | None = None,
    *,
    settings: Settings = "fast",
    forgiving: bool = True,
) -> Any:
    """Construct the world. `folder`: where the simulator may leave its files (two even in fast mode).

    `forgiving`: an exception of an agent ends its negotiation and is counted, as in official tournaments, instead of
    ending the world.
    """
    from scml.std import SCML2024StdWorld

    players = [find_player(name) for name in spec.agents]
    _seed(spec.market_seed)
    generated = SCML2024StdWorld.generate(
        agent_types=[cls for cls, _ in players],
        agent_params=[{"controller_params": values} if values else {} for _, values in players],
        agent_processes=list(spec.processes),
        n_processes=spec.n_processes,
        n_steps=spec.n_steps,
        random_agent_types=False,
    )
    more = _SETTINGS[settings] | (_FORGIVING if forgiving else {})
    world = (world_class or SCML2024StdWorld)(**generated, **more, name=spec.world_id, log_folder=str(folder))
    if settings == "fast":
        world.save_negotiations = False  # the constructor overrides its argument
    _seed(spec.seed)
    return world


@contextmanager
def playing(
    spec: WorldSpec, world_class: type | None = None, *, settings: Settings = "fast", tables: Path | None = None
) -> Iterator[Any]:
    """A world that is ready to run, in the surroundings that make it exact; its files are gone afterwards.

    `tables`: keep the simulator's own files in this folder instead (with settings "tables").
    """
    folder = Path(tempfile.mkdtemp(prefix="marlab-world-", dir=task_folder())) if tables is None else tables
    try:
        with _private_mechanism_random(spec.seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the simulator and of the entrants, who warn on every day
            yield make_world(spec, folder, world_class, settings=settings if tables is None else "tables")
    finally:
        if tables is None:
            shutil.rmtree(folder, ignore_errors=True)


def play(spec: WorldSpec, *, settings: Settings = "fast") -> Any:
    """Play a world to its end without recording and return it."""
    with playing(spec, settings=settings) as world:
        world.run()
    return world


def play_worlds(
    specs: Sequence[WorldSpec], folder: Path, engine: EngineConfig, failed: Callable[[TaskResult, Progress], None],
    stop: Callable[[], bool] = lambda: False, time_limit: float | None = None, quiet: bool = False,
) -> None:  # fmt: skip
    """Play and record the worlds that have no log in the folder yet; `failed` is told about those that fail."""
    from marlab.market.simulator.record import record_task

    folder.mkdir(parents=True, exist_ok=True)
    waiting = [spec for spec in specs if not (folder / f"{spec.world_id}.parquet").exists()]
    tasks = [Task(spec.world_id, (spec.to_dict(),), time_limit_s=time_limit) for spec in waiting]
    with (
        Progress("playing", total=len(specs), unit="worlds", done=len(specs) - len(waiting), quiet=quiet) as bar,
        contextlib.closing(run_tasks(record_task, tasks, engine, stop=stop)) as results,
    ):
        for result in results:
            if result.ok:
                with replacing(folder / f"{result.key}.parquet") as temporary:
                    temporary.write_bytes(result.value[0])
            else:
                failed(result, bar)
            bar.advance(1, failures=0 if result.ok else 1)


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)


@contextmanager
def _private_mechanism_random(seed: int) -> Iterator[None]:
    """negmas draws from the global stream once more for every second that a negotiation lasts: give it its own."""
    from negmas import mechanisms

    shared = mechanisms.random
    mechanisms.random = random.Random(seed)
    try:
        yield
    finally:
        mechanisms.random = shared
