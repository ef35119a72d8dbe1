"""Where the time of a training goes, without stopping the device to ask."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class Stopwatch:
    """Sums wall time per named part: `with watch("world"): ...`. On CUDA it uses events and synchronises once."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._seconds: dict[str, float] = {}
        self._events: list[tuple[str, Any, Any]] = []

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        if self._cuda:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            try:
                yield
            finally:
                end.record()
                self._events.append((name, begin, end))
        else:
            start = time.perf_counter()
            try:
                yield
            finally:
                self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def pop(self) -> dict[str, float]:
        """Seconds per part since the last call."""
        if self._events:
            torch.cuda.synchronize()
            for name, begin, end in self._events:
                self._seconds[name] = self._seconds.get(name, 0.0) + begin.elapsed_time(end) / 1e3
            self._events.clear()
        seconds, self._seconds = self._seconds, {}
        return seconds
