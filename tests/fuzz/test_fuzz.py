"""A short run of every fuzzer, and proof that the guard sees what it should see. `make fuzz` runs 10,000 cases."""

from __future__ import annotations

import time

import numpy as np
import pytest

from marlab.cli import main
from marlab.lab.errors import UserError
from tests.fuzz import guard
from tests.fuzz.families import FAMILIES, case, prepare
from tests.fuzz.guard import Case, run_case, work_begins
from tests.fuzz.tripwires import tripwires

SHORT = {"lines": 120, "configs": 120, "folders": 40, "weights": 150, "data": 30}
"""Cases of each family: together they take some seconds."""


@pytest.fixture(scope="module", autouse=True)
def prepared() -> None:
    prepare()


@pytest.mark.parametrize("family", SHORT)
def test_no_traceback(family: str) -> None:
    with tripwires():
        ends = [run_case(case(family, 1, number)) for number in range(SHORT[family])]
    assert [ended.why for ended in ends if ended.kind == "failed"] == []
    assert len({ended.kind for ended in ends}) > 1, "all cases end alike: they test nothing"


def test_cases_are_functions_of_seed_and_number() -> None:
    for family in FAMILIES:
        one, same, other = case(family, 1, 5), case(family, 1, 5), case(family, 2, 5)
        assert (one.told, one.files) == (same.told, same.files)
        assert (one.told, one.files) != (other.told, other.files)


def _refuse() -> None:
    raise UserError("no")


def test_the_guard_tells_ends_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "SECONDS", 1)
    ends = {
        "done": lambda: None, "refused": _refuse, "began": work_begins, "failed": lambda: 1 / 0,
    }  # fmt: skip
    for kind, call in ends.items():
        assert run_case(Case("x", 0, "x", call)).kind == kind
    assert run_case(Case("x", 0, "x", lambda: main(["no-such-command"]))).kind == "refused"
    assert "longer than" in run_case(Case("x", 0, "x", lambda: time.sleep(3))).why
    assert "Memory" in run_case(Case("x", 0, "x", lambda: np.ones(3 << 30, np.uint8))).why
    assert "exit code 3" in run_case(Case("x", 0, "x", lambda: 3)).why
