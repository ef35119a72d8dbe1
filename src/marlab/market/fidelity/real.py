"""The seats in the simulator: one world per seat and seller, on any engine, with what is done kept in one file."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.files import read_json, write_json
from marlab.market.fidelity.plan import FidelityConfig, Seat, seats_of
from marlab.market.simulator.worlds import WorldSpec
from marlab.market.vector.configs import Configs, join

SCORES = "real.json"
"""Scores by world id."""
LIMIT_S = 1800.0
"""Seconds after which a world is ended and counted as failed."""


def play_task(spec: dict[str, Any], place: int) -> float:
    """The engine's task: the score in one seat of one world."""
    from marlab.market.simulator.worlds import play

    world = play(WorldSpec.from_dict(spec))
    return float(world.scores()[list(world.agent_profiles)[place]])


def known(file: Path) -> dict[str, float]:
    """Scores of worlds that were played before."""
    if not file.exists():
        return {}
    stored = read_json(file, lambda why: UserError(f"{why}; remove it to play its worlds again."))
    right = isinstance(stored, dict) and all(isinstance(v, int | float) and np.isfinite(v) for v in stored.values())
    if not right:
        raise UserError(f"{file} does not hold scores by world; remove it to play them again.")
    return {str(key): float(value) for key, value in stored.items()}


def play_seats(
    config: FidelityConfig,
    file: Path,
    engine: EngineConfig,
    stop: Callable[[], bool] = lambda: False,
    quiet: bool = False,
) -> bool:
    """Play what is missing in `file`; whether everything is there now."""
    done = known(file)
    worlds = {
        spec.world_id: (spec.to_dict(), seat.place)
        for seat in seats_of(config)
        for spec in (seat.world(config.agent(name)) for name in config.names)
    }
    tasks = [Task(key, job, time_limit_s=LIMIT_S) for key, job in worlds.items() if key not in done]
    if not tasks:
        return True
    with (
        Progress("playing", total=len(worlds), unit="worlds", done=len(worlds) - len(tasks), quiet=quiet) as bar,
        contextlib.closing(run_tasks(play_task, tasks, engine, stop=stop)) as results,
    ):
        for result in results:
            if not result.ok:
                raise UserError(f"World {result.key} could not be played ({result.kind}): {result.error[-500:]}")
            done[result.key] = result.value
            write_json(file, done)
            bar.advance(1)
            if stop():
                break
    return all(key in done for key in worlds)


def scores_of(config: FidelityConfig, file: Path) -> NDArray[np.float64]:
    """[sellers, seats], the rule first; nan where nothing was played yet."""
    done = known(file)
    return np.array(
        [
            [done.get(seat.world(config.agent(name)).world_id, np.nan) for seat in seats_of(config)]
            for name in config.names
        ]
    )


def draw_configs(seats: Sequence[Seat]) -> Configs:
    """The markets of the seats as the simulator draws them, one for each seat."""
    from marlab.market.simulator.evidence import draw_config

    with tempfile.TemporaryDirectory(prefix="marlab-configs-") as folder:
        return join([draw_config(seat.world("RandomStdAgent"), Path(folder)) for seat in seats])
