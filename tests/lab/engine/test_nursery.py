"""The life of a child process: prepared, seeded by its key, and heard even when its module kills it."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.engine.tasks import Task, run_tasks
from tests.lab.engine import tasks_to_do as engine_tasks
from tests.lab.engine.cases import run_one


def test_the_process_of_a_task_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = run_one(engine_tasks.surroundings).value
    assert here["threads"] == "1"
    assert here["leads its group"]
    assert here["directory"] == str(tmp_path)


def test_global_generators_are_seeded_by_the_key() -> None:
    def drawn(engine: str) -> dict[str, tuple[float, float, int]]:
        return {r.key: r.value for r in run_tasks(engine_tasks.careless, [Task(k) for k in "abc"], engine)}

    first = drawn("serial")
    assert first == drawn("local")
    assert len(set(first.values())) == 3


def test_modules_that_the_function_will_need_are_there_before_it_is_called() -> None:
    name = "xml.sax.saxutils"  # that nothing else here imports
    tasks = [Task("a", (name,))]
    assert [r.value for r in run_tasks(engine_tasks.is_imported, tasks, "serial")] == [False]
    assert [r.value for r in run_tasks(engine_tasks.is_imported, tasks, "serial", imports=(name,))] == [True]


def test_a_traceback_shows_the_task_and_not_the_engine() -> None:
    error = run_one(engine_tasks.trouble, "raise", 5).error
    assert error.startswith("Traceback")
    assert "in trouble" in error
    assert "nursery.py" not in error


def test_a_monstrous_message_keeps_its_ends() -> None:
    error = run_one(engine_tasks.verbose).error
    assert "ValueError: begin" in error
    assert error.rstrip().endswith("x end")
    assert "characters left out" in error
    assert len(error) < 200_000


def test_of_two_copies_that_return_the_first_one_counts() -> None:
    assert run_one(engine_tasks.return_twice).value > 0


def test_a_module_that_kills_its_importer_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preloading must not turn a broken module into a batch that never starts."""
    module = tmp_path / "deadly_module.py"
    module.write_text("def work(): return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import deadly_module  # type: ignore[import-not-found]

    module.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    result = run_one(deadly_module.work)
    assert result.kind == "died"
    assert "signal 9 (SIGKILL)" in result.error
    module.write_text("import no_such_module\n")
    assert "No module named 'no_such_module'" in run_one(deadly_module.work).error
