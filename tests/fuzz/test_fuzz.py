"""A short run of every fuzzer, and proof that the guard sees what it should see. `make fuzz` runs 30,000 cases."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from marlab.cli import main
from marlab.lab.errors import UserError
from tests.fuzz import guard
from tests.fuzz.__main__ import Count, damaged_files, drawn_lines
from tests.fuzz.formats import Format, fault
from tests.fuzz.guard import Case, Ended, run_case, work_begins
from tests.fuzz.stage import made


def test_some_hundred_cases_without_a_traceback() -> None:
    """In a process of its own: tripwires and limits must not touch other tests."""
    words = [sys.executable, "-m", "tests.fuzz", "--files", "200", "--lines", "100", "--seed", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}"
    assert "300 cases, 0 tracebacks" in done.stdout


def test_a_fault_of_a_reader_is_found_and_counted(capfd: pytest.CaptureFixture[str]) -> None:
    """The fuzzer itself: a reader that trusts a length is caught, and what reaches new lines is damaged further."""

    def trusting() -> None:
        data = Path("a.json").read_bytes()
        np.zeros(json.loads(data)["length"], np.uint8)

    source = made(lambda folder: (folder / "a.json").write_text('{"length": 3}'))
    count = Count(show=False)
    with count.part("trusting"):
        for case, ended in damaged_files("trusting", Format(source, (trusting,)), 60, 0, None):
            count.add(case, ended)
    assert count.ends["failed"] > 10 and any("Memory" in why or "negative" in why for why in count.faults)
    assert "trusting: 60 cases" in capfd.readouterr().out


def test_damage_and_lines_follow_from_the_seed() -> None:
    def told(seed: int) -> list[str]:
        found: list[str] = []
        with mock.patch("tests.fuzz.__main__.run_case", lambda case: Ended(case, "done")):
            drawn_lines(20, seed, None, lambda case, ended: found.append(case.told))
        return found

    assert told(1) == told(1) != told(2) and len(told(1)) == 20
    table = json.dumps({"a": [1, {"b": 2.5}]}).encode()
    some = {fault("a.json", table, random.Random(n)) for n in range(40)}
    assert len(some) > 20 and some == {fault("a.json", table, random.Random(n)) for n in range(40)}


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
