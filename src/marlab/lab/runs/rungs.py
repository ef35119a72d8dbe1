"""Trainings that are to stop on the way, at a rung: a sweep compares them there and goes on with the best.

    with only_until(folder, 20): work(config, options)   # interrupted after 20 iterations; without it, it goes on

The run has the settings of the whole training, so that one that goes on ends as if it had never stopped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

STOPPED = re.compile(r"stopped after (\d+) units of work")
_rung: ContextVar[tuple[Path, int] | None] = ContextVar("rung", default=None)


@contextmanager
def only_until(run: Path, step: int | None) -> Iterator[None]:
    """The training in the run directory `run` stops once it has done `step` units; None lets it do all."""
    token = _rung.set(None if step is None else (run.absolute(), step))
    try:
        yield
    finally:
        _rung.reset(token)


def reached(run: Path, step: int) -> bool:
    """Whether the training in `run` is to stop now; runs inside of it (phases) are not meant."""
    rung = _rung.get()
    return rung is not None and run.absolute() == rung[0] and step >= rung[1]


def stopped_after(step: int) -> str:
    """The reason that the record of such a run gives."""
    return f"stopped after {step} units of work"


def steps_done(reason: str | None) -> int | None:
    """How far a run came that stopped at a rung; None for every other reason."""
    found = STOPPED.fullmatch(reason or "")
    return int(found[1]) if found else None
