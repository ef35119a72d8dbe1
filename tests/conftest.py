"""Shared by all tests: one thread, so that results are equal on every machine and two workers do not fight."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import hypothesis
import pytest
import torch

# How long an example takes is no property of the code: a busy machine is no fault.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the programs that tests start
if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # a job in the background: programs that tests start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

HOUSE = Path(__file__).parents[1]
SLOW = tuple(
    line for line in Path(__file__).with_name("slow.txt").read_text().splitlines() if line and not line.startswith("#")
)


def is_slow(place: str) -> bool:
    """Whether tests/slow.txt lists a folder, a file or a function as FILE::FUNCTION, or what it lies in."""
    return any(place == listed or place.startswith((f"{listed}/", f"{listed}::")) for listed in SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import slow files when they are not wanted."""
    unwanted = "not slow" in config.option.markexpr and collection_path.is_relative_to(HOUSE)
    return True if unwanted and is_slow(collection_path.relative_to(HOUSE).as_posix()) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_slow(item.nodeid.partition("[")[0]):
            item.add_marker(pytest.mark.slow)
