"""Every module has a test file of its name: src/marlab/fish/sea/reset.py has tests/fish/sea/test_reset.py."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.conftest import SLOW

HOUSE = Path(__file__).parents[1]
MOST = 20

WITHOUT = {
    "fish/sea/constants.py": "numbers alone; test_dynamics.py compares what follows from them with a plain loop",
    "market/learn/figures.py": "drawn by test_phases.py, which looks for every file of a whole training",
    "market/online/figures.py": "drawn by test_work.py, which looks for the file of a whole training",
    "lab/errors.py": "one exception class without behaviour; every test of bad input raises it",
    "lab/engine/nodes.py": "a program; the cluster tests of test_faults.py, test_dask.py and test_ray.py start it",
    "lab/engine/no_dashboard.py": "what Dask imports in its own processes; test_cluster.py counts the open ports",
}
"""Modules that have no test file of their own, and why."""


def modules() -> set[str]:
    source = HOUSE / "src" / "marlab"
    return {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
    }


def file_for(module: str) -> Path:
    path = Path(module)
    return HOUSE / "tests" / path.parent / f"test_{path.name}"


def holds_tests(file: Path) -> bool:
    tree = ast.parse(file.read_text())
    return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.walk(tree))


def test_every_module_has_its_test() -> None:
    missing = {name for name in modules() if not file_for(name).exists()}
    assert missing - set(WITHOUT) == set(), "modules without a test file of their name"
    assert set(WITHOUT) - missing == set(), "these have a test now, or are gone: take them out"
    assert len(WITHOUT) <= MOST


def test_every_test_file_has_tests() -> None:
    assert [file for file in (HOUSE / "tests").rglob("test_*.py") if not holds_tests(file)] == []


def test_the_list_of_slow_tests_names_what_there_is() -> None:
    for listed in SLOW:
        file, _, function = listed.partition("::")
        assert (HOUSE / file).exists(), listed
        assert not function or f"def {function}(" in (HOUSE / file).read_text(), listed
