"""Where real work would begin: a case that comes so far was accepted, and is stopped there.

What is replaced stays replaced in modules that are imported meanwhile, so this belongs into a process of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

from marlab.lab.engine.tasks import TaskResult
from tests.fuzz.guard import work_begins

BEGINNINGS = (
    "marlab.lab.runs.trainer:loop",
    "marlab.fish.measure.policies:moments",
    "marlab.fish.measure.policies:play",
    "marlab.hunt.data.collect:play_batches",
    "marlab.hunt.players.rollout:moments",
    "marlab.hunt.players.rollout:play",
    "marlab.hunt.evaluate.play:play_stream",
    "marlab.hunt.exact.check:check",
    "marlab.hunt.watch.record:record",
    "marlab.hunt.data.dataset:check_integrity",
    "marlab.quickstart.command:_plan",
    "marlab.market.samples.stats:describe",
    "marlab.market.arena.official:official",
    "marlab.market.simulator.evidence:draw_config",
    "marlab.market.online.steer:fare",
    "marlab.market.clones.examples:examples",
)
"""Trainings, played games and what else takes seconds, by the modules that define them."""
QUICK = {"marlab.market.samples.work:make_part"}
"""Tasks that are done in this process instead of in others."""


def tasks_here(spec: Any, tasks: Any, *how: Any) -> Iterator[TaskResult]:
    """Instead of the engine: quick tasks at once, the others not at all."""
    if f"{spec.module}:{spec.name}" not in QUICK:
        work_begins()
    function = getattr(importlib.import_module(spec.module), spec.name)
    for task in tasks:
        yield TaskResult(task.key, "ok", function(*task.args, **task.kwargs))


def _everywhere(stack: contextlib.ExitStack, target: str, instead: Any) -> None:
    """Replace a function in the module that defines it and in all that have imported it."""
    home, _, name = target.partition(":")
    original = getattr(importlib.import_module(home), name)
    for module in [m for key, m in sys.modules.items() if key.startswith("marlab.")]:
        for known, value in list(vars(module).items()):
            if value is original:
                stack.enter_context(mock.patch.object(module, known, instead))


@contextlib.contextmanager
def tripwires() -> Iterator[None]:
    """No training, no simulation, no other process."""
    with contextlib.ExitStack() as stack:
        for target in BEGINNINGS:
            _everywhere(stack, target, work_begins)
        _everywhere(stack, "marlab.lab.engine.tasks:_run", tasks_here)
        _everywhere(stack, "marlab.lab.runs.run:detach", lambda argv, path: 1)
        _everywhere(stack, "marlab.fish.measure.ceiling:doomed_share", lambda *args, **kwargs: 0.0163)
        yield
