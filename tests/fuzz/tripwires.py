"""Where real work would begin: a case that comes so far was accepted, and is stopped there."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from marlab.lab.engine.tasks import TaskResult
from tests.fuzz.guard import work_begins

BEGINNINGS = (
    # every training
    "marlab.lab.runs.trainer:loop",
    "marlab.hunt.training.phases:loop",
    "marlab.hunt.museum.training:loop",
    # played episodes and what else takes seconds
    "marlab.fish.measure.policies:moments",
    "marlab.fish.measure.probe:play",
    "marlab.fish.training.evaluate:compare",
    "marlab.hunt.data.collect:play_batches",
    "marlab.hunt.exact.check:check",
    "marlab.hunt.evaluate.run:_measure",
    "marlab.hunt.museum.run:exhibit",
    "marlab.hunt.diagnose.report:diagnose_ppo",
    "marlab.hunt.diagnose.report:diagnose_hop",
    "marlab.hunt.watch.film:record",
    "marlab.quickstart.command:_plan",
    "marlab.market.samples.make:_report",
    "marlab.hunt.diagnose.report:diagnose_data",
    "marlab.market.arena.official:official",
)
QUICK = {"marlab.market.samples.work:make_part"}
"""Tasks that are done in this process instead of in others."""


def tasks_here(spec: Any, tasks: Any, config: Any, progress: Any) -> Iterator[TaskResult]:
    """Instead of the engine: quick tasks at once, the others not at all."""
    if f"{spec.module}:{spec.name}" not in QUICK:
        work_begins()
    function = getattr(importlib.import_module(spec.module), spec.name)
    for task in tasks:
        yield TaskResult(task.key, "ok", function(*task.args, **task.kwargs))


@contextlib.contextmanager
def tripwires() -> Iterator[None]:
    """No training, no simulation, no other process."""
    with contextlib.ExitStack() as stack:
        for target in BEGINNINGS:
            module, _, name = target.partition(":")
            stack.enter_context(mock.patch.object(importlib.import_module(module), name, work_begins))
        stack.enter_context(mock.patch("marlab.lab.engine.tasks._run", tasks_here))
        stack.enter_context(mock.patch("marlab.lab.command.detach", lambda argv, path: 1))
        stack.enter_context(mock.patch("marlab.fish.measure.ceiling.doomed_share", lambda *a, **k: 0.0163))
        yield
