"""One training of a sweep, as a task of the engine: an ordinary run in the folder of the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.runs.budget import clock
from marlab.lab.runs.records import RunInfo, read_run
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.rungs import only_until, steps_done
from marlab.lab.sweep.plan import Training, command_line, ready


def run_trial(
    training: Training, values: Mapping[str, Any], folder: str, sweep: str, rung: int | None,
    time_limit: float | None = None,
) -> str:  # fmt: skip
    """Train until the rung (None: to the end), from where the run in `folder` is; returns its status."""
    made, path = ready(training, values), Path(folder)
    known = record_of(path)
    options = RunOptions(
        output_dir=path, resume=known is not None and known.status != "planned", group=sweep, parent=f"sweep/{sweep}",
        time_limit=time_limit,
    )  # fmt: skip
    words = command_line(training, values)
    with clock(), only_until(path, rung):
        run = made.command.function()(made.config, options, preset=made.preset, command=words, quiet=True)
    return str(run.status)


def record_of(path: Path) -> RunInfo | None:
    """The record of a trial that was begun; None where there is none, or none that can be read."""
    if not (path / "run.json").exists():
        return None
    try:
        return read_run(path)
    except UserError:
        return None


def is_done(path: Path, rung: int | None) -> bool:
    """Whether a trial has come to the rung (None: to its end): the run itself is the only record of that."""
    info = record_of(path)
    if info is None:
        return False
    steps = steps_done(info.reason) if info.status == "interrupted" else None
    return info.status == "finished" or (rung is not None and steps is not None and steps >= rung)
