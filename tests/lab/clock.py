"""A clock for tests of time limits and rates, put in place of a module's `time`."""

from __future__ import annotations


class Clock:
    """Time that passes only when a test says so."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
