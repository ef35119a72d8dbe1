"""Shared by all tests: one thread, so that results are equal on every machine and two workers do not fight."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("patient", deadline=None)  # a busy machine is slow, not wrong
settings.load_profile("patient")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the programs that tests start

SLOW = Path(__file__).with_name("slow.txt")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what tests/slow.txt lists: whole files, or functions as FILE::FUNCTION."""
    listed = {line for line in SLOW.read_text().splitlines() if line and not line.startswith("#")}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if test in listed or test.partition("::")[0] in listed:
            item.add_marker(pytest.mark.slow)
