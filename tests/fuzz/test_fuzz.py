"""A short run of every fuzzer, and proof that the guard sees what it should see. `make fuzz` runs 10,000 cases."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from marlab.cli import main
from marlab.lab.errors import UserError
from tests.fuzz import configs, guard, lines
from tests.fuzz.guard import Case, run_case, work_begins


def test_some_hundred_cases_without_a_traceback() -> None:
    """In a process of its own: tripwires and limits must not touch other tests."""
    words = [sys.executable, "-m", "tests.fuzz", "--count", "280", "--seed", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
    assert "280 cases, 0 tracebacks" in done.stdout


def test_cases_are_functions_of_seed_and_number() -> None:
    for make in (lines.case, configs.case):
        one, same, other = make(1, 5), make(1, 5), make(2, 5)
        assert (one.told, one.files) == (same.told, same.files)
        assert (one.told, one.files) != (other.told, other.files)


def _refuse() -> None:
    raise UserError("no")


def _endless() -> None:
    while True:
        pass


def test_the_guard_tells_ends_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "SECONDS", 0.3)
    monkeypatch.setattr(guard, "WAITING", 1.0)
    ends = {
        "done": lambda: None, "refused": _refuse, "began": work_begins, "failed": lambda: 1 / 0,
    }  # fmt: skip
    for kind, call in ends.items():
        assert run_case(Case("x", 0, "x", call)).kind == kind
    assert run_case(Case("x", 0, "x", lambda: main(["no-such-command"]))).kind == "refused"
    assert "longer than" in run_case(Case("x", 0, "x", lambda: time.sleep(3))).why
    assert "longer than" in run_case(Case("x", 0, "x", _endless)).why
    assert "Memory" in run_case(Case("x", 0, "x", lambda: np.ones(3 << 30, np.uint8))).why
    assert "exit code 3" in run_case(Case("x", 0, "x", lambda: 3)).why
