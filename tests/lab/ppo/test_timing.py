"""A stopwatch: sums per part, parts that fail count too, and popping starts anew."""

from __future__ import annotations

import itertools

import pytest
import torch

from marlab.lab.ppo import timing
from marlab.lab.ppo.timing import Stopwatch


def test_sums_per_part(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.accumulate([0, 2, 1, 3, 1, 5])  # at 0 2 | 3 6 | 7 12
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(clock)))
    watch = Stopwatch(torch.device("cpu"))
    with watch("world"):
        pass
    with pytest.raises(ValueError), watch("learning"):
        raise ValueError
    with watch("world"):
        pass
    assert watch.pop() == {"world": 7.0, "learning": 3.0}
    assert watch.pop() == {}
