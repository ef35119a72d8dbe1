"""A training of fractions of a second to try out settings of."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marlab.lab.command import RunCommand
from marlab.lab.engine.tasks import Task, TaskResult
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.sweep.config import SweepCommand
from marlab.lab.sweep.plan import Training
from marlab.lab.sweep.sweep import sweep

TINY = Training("examples.tiny_world.command:main", ("tiny", "train"))
RATES = "ppo.learning_rate=1e-4,3e-3,1e-2"
SMALL = ("iterations=6", "rings=4", "n_cells=5", "device=cpu", "ppo.n_steps=8", "ppo.batch_size=16")


@dataclass(frozen=True)
class Seedless:
    """Nothing random."""

    width: int = 1


seedless = RunCommand("toy train", Seedless, "tests.lab.sweep.cases:nothing")
SEEDLESS = Training("tests.lab.sweep.cases:seedless", ("toy", "train"))


def in_this_process(function: Callable[..., Any], tasks: Iterable[Task], *_: Any, **__: Any) -> Iterator[TaskResult]:
    """What `run_tasks` does, without the seconds that a worker needs to start."""
    for task in tasks:
        try:
            yield TaskResult(task.key, "ok", function(*task.args, **task.kwargs))
        except Exception:
            yield TaskResult(task.key, "raised", error=traceback.format_exc())


def tiny_sweep(folder: Path, *settings: str, resume: bool = False, **more: Any) -> Run:
    """A sweep of the tiny world without a word, one task after the other."""
    config = SweepCommand(
        **{"words": TINY.words, "set": (*SMALL, *settings), "engine": "serial", "quiet": True, **more}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("marlab.lab.sweep.sweep.run_tasks", in_this_process)
        return sweep(TINY, config, RunOptions(output_dir=folder, resume=resume))


def table(run: Run) -> dict[str, Any]:
    """What a sweep found, as its file holds it."""
    found: dict[str, Any] = json.loads((run.path / "comparison.json").read_text())
    return found
