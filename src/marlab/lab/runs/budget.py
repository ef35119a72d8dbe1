"""The time of a command: what is left of its limit, what its ending needs, and whether one more unit of work fits.

    budget.expect("evaluation", seconds)   # kept back while training: measured, or estimated from a measurement
    while not budget.next_unit_is_too_long(): ...
    with budget.part("evaluation"): ...    # what was kept back for it may be used now

The limit counts from the command's first moment, imports included, to its last line.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

RECENT = 20
"""The longest of so many units is what the next one may take: every so often one also probes or films."""
CLOSING_S, LONGEST_CLOSING_S = 1.0, 10.0
"""Kept back for the very end: the record, the last lines, and the interpreter's own end."""
CLOSING_SHARE = 0.6
"""A machine that is slow to begin (imports) is slow to end: of the seconds that the beginning took."""
WORTH_SAYING_S = 60.0
"""Whatever takes longer is announced with an estimate."""

_began: ContextVar[float | None] = ContextVar("began", default=None)


@contextmanager
def clock() -> Iterator[None]:
    """A command begins here: the limits of runs that are opened inside count from now."""
    token = _began.set(time.monotonic())
    try:
        yield
    finally:
        _began.reset(token)


class Budget:
    """The time of one command. Without a limit everything fits."""

    def __init__(self, limit_s: float | None = None) -> None:
        began = _began.get()
        self.began = time.monotonic() if began is None else began
        self.limit_s = math.inf if limit_s is None else limit_s
        beginning = time.monotonic() - self.began
        self.closing_s = min(LONGEST_CLOSING_S, max(CLOSING_S, CLOSING_SHARE * beginning))
        self._kept: dict[str, float] = {}
        self._measure_units()

    def _measure_units(self) -> None:
        self._point = time.monotonic()
        self._units: list[float] = []

    # --- what is left ---------------------------------------------------------------------------------------

    @property
    def limited(self) -> bool:
        return self.limit_s < math.inf

    def left(self) -> float:
        """Seconds for the part that is worked on now: until the limit, less what later parts need."""
        kept = self.closing_s + sum(self._kept.values())
        return self.began + self.limit_s - time.monotonic() - kept

    def fits(self, seconds: float) -> bool:
        """Whether work of this length may begin now."""
        return seconds <= self.left()

    def over(self) -> bool:
        """Whether this part has had its time: what can be cut anywhere is cut now."""
        return not self.fits(0.0)

    # --- units ----------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """A unit of work has ended here."""
        now = time.monotonic()
        self._units.append(now - self._point)
        self._point = now

    def unit(self) -> float:
        """What the next unit may take. The first one (compiling, warming up) counts only while it is alone."""
        known = self._units[1:] or self._units
        return max(known[-RECENT:], default=0.0)

    def typical_unit(self) -> float | None:
        """The mean of recent units, None before there are two: the first says little about the rest."""
        known = self._units[1:][-RECENT:]
        return sum(known) / len(known) if known else None

    def next_unit_is_too_long(self) -> bool:
        return not self.fits(self.unit())

    # --- parts ----------------------------------------------------------------------------------------------

    def expect(self, part: str, seconds: float) -> None:
        """Keep this much back for a later part; a better estimate replaces the one before."""
        self._kept[part] = max(0.0, seconds)

    def expected(self, part: str) -> float:
        return self._kept.get(part, 0.0)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Work on a part: nothing is kept back for it any longer, and its units are measured by themselves."""
        self._kept.pop(name, None)
        outside = self._units
        self._measure_units()
        try:
            yield
        finally:
            self._units, self._point = outside, time.monotonic()


def announce(seconds: float, budget: Budget, say: Callable[[str], None] = print, what: str = "the rest") -> None:
    """An estimate of what takes more than a minute, and what the time limit makes of it; else nothing."""
    if seconds <= WORTH_SAYING_S:
        return
    from marlab.lab.progress import duration  # here, because the clock starts before anything else is imported

    told = f"{what} takes about {duration(seconds)} at this pace"
    if not budget.fits(seconds):
        told += f"; the time limit of {duration(budget.limit_s)} stops it earlier"
    say(told)
