"""Safe points of commands that have no run directory: a signal, or a time limit, ends them with what they have so far.

with Stopping(config.time_limit) as stopping:
    for part in parts:
        if stopping.should_stop():
            break
"""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.runs.budget import Budget


def check_time_limit(minutes: float | None) -> None:
    if minutes is not None and not 0 < minutes < math.inf:
        raise UserError(f"--time-limit is {minutes:g}, expected a positive number of minutes.")


@contextmanager
def stop_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Ctrl-C, SIGTERM and a terminal that is closed call `handler`; what is ignored, as under nohup, stays ignored."""
    before: dict[int, Any] = {}
    try:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # not every system has all of them
            if number is None or signal.getsignal(number) == signal.SIG_IGN:
                continue
            try:
                before[number] = signal.signal(number, handler)
            except ValueError:  # not in the main thread: the caller handles signals
                break
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class Stopping:
    """Whether to go on. The first signal asks for the next safe point, the second does not wait."""

    def __init__(self, minutes: float | None = None) -> None:
        self.budget = Budget(None if minutes is None else minutes * 60.0)
        self._signal: int | None = None
        self._handlers = ExitStack()

    def __enter__(self) -> Stopping:
        self._handlers.enter_context(stop_signals(self._on_signal))
        return self

    def __exit__(self, *error: object) -> None:
        self._handlers.close()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:
            raise KeyboardInterrupt
        self._signal = number
        name = signal.Signals(number).name
        print(f"\n{name}: stopping at the next safe point; once more stops at once.", file=sys.stderr)

    def should_stop(self) -> bool:
        """Ask between two units of work: True after a signal, or when the next one may pass the time limit."""
        self.budget.tick()
        return self._signal is not None or self.budget.next_unit_is_too_long()

    def must_stop(self) -> bool:
        """Ask anywhere: True after a signal, or when the time is up."""
        return self._signal is not None or self.budget.over()

    @property
    def exit_code(self) -> int:
        """0, or 128 + the signal, as shells expect."""
        return 0 if self._signal is None else 128 + self._signal
