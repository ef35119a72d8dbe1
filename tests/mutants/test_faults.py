"""The tool that tests the tests: which faults it makes, and that it sees whether a test fails."""

from __future__ import annotations

from pathlib import Path

from tests.mutants.core import CORE, draw, equivalents, survivors
from tests.mutants.faults import faults_in
from tests.mutants.judge import HOUSE, SOURCE

TEXT = b'''"""A number 3 in a text stays."""
LIMIT = 2.5


class Setting:
    size: int = 3


def decide(x: int, y: int = 0) -> bool:
    """Whether 1 < 2."""
    if x < LIMIT and not y:
        raise ValueError(f"{x + 1}")
    return max(x, y) - 1 >= 4
'''


def test_every_comparison_sign_and_constant_is_changed_once() -> None:
    found = [(fault.old, fault.new) for fault in faults_in("x.py", TEXT)]
    assert sorted(found) == sorted(
        [
            ("2.5", "5.0"), ("0", "1"), ("x < LIMIT", "(x <= LIMIT)"), ("not y", "(y)"),
            ("x < LIMIT and not y", "(x < LIMIT or not y)"), ("max(x, y)", "min(x, y)"), ("1", "2"), ("4", "5"),
            ("max(x, y) - 1", "(max(x, y) + 1)"), ("max(x, y) - 1 >= 4", "(max(x, y) - 1 > 4)"),
        ]
    )  # fmt: skip


def test_a_fault_changes_its_place_and_nothing_else() -> None:
    fault = next(fault for fault in faults_in("x.py", TEXT) if fault.old == "x < LIMIT")
    assert fault.applied(TEXT) == TEXT.replace(b"x < LIMIT", b"(x <= LIMIT)")
    assert fault.place == "decide" and fault.statement == "if x < LIMIT and not y:"


def test_faults_of_the_core_can_be_compiled_and_have_names_of_their_own() -> None:
    for module in CORE:
        source = (SOURCE / module).read_bytes()
        found = faults_in(module, source)
        assert len({fault.name for fault in found}) == len(found) > 0
        for fault in found[::10]:
            compile(fault.applied(source), module, "exec")


def test_a_draw_is_a_function_of_its_seed() -> None:
    assert draw(40, 3) == draw(40, 3) != draw(40, 4)
    assert sum(map(len, draw(40, 3).values())) == 40


def test_tests_of_the_core_are_there_and_equivalent_faults_have_reasons() -> None:
    for tests in CORE.values():
        assert all((HOUSE / test).exists() for test in tests)
    known = {fault.name for module in CORE for fault in faults_in(module, (SOURCE / module).read_bytes())}
    for name, reason in equivalents().items():
        assert reason
        assert name in known, "this fault is gone: take it from equivalent.txt"


def test_survivors_are_found_in_what_was_printed(tmp_path: Path) -> None:
    module = "fish/sea/rewards.py"
    two = faults_in(module, (SOURCE / module).read_bytes())[3:5]
    lines = [f"  survived, line {fault.line}: {fault.name}" for fault in two]
    (tmp_path / "log").write_text("\n".join([*lines, "  survived, line 1: fish/sea/rewards.py | gone | x | 1 -> 2"]))
    assert survivors(tmp_path / "log") == {module: two}
