"""What the keeper answers for: limits, output, the reason of a death, and that nothing survives a task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from marlab.lab.engine.keeper import task_folder
from marlab.lab.engine.tasks import Task, run_tasks
from tests.lab.engine import tasks_to_do as engine_tasks
from tests.lab.engine.cases import run_one


def test_what_a_task_prints_is_kept() -> None:
    assert run_one(engine_tasks.say, "hello").output == "hello\nand this on stderr\n"
    result = run_one(engine_tasks.say_and_die, "last words")
    assert (result.kind, result.output) == ("died", "last words\n")
    assert run_one(engine_tasks.say, "x" * 100_000).output.endswith("x\nand this on stderr\n")


def test_a_segfault_tells_where() -> None:
    result = run_one(engine_tasks.trouble, "segfault", 1)
    assert (result.kind, result.attempts) == ("died", 2)
    assert "signal 11 (SIGSEGV)" in result.error
    assert "in trouble" in result.error
    assert "nursery.py" not in result.error and "keeper.py" not in result.error


def test_leaving_without_a_result_is_death() -> None:
    result = run_one(engine_tasks.leave, "os._exit")
    assert result.kind == "died"
    assert "exit code 0" in result.error


def test_a_time_limit_tells_where_the_task_was() -> None:
    result = run_one(engine_tasks.trouble, "hang", 1, time_limit_s=1)
    assert (result.kind, result.attempts) == ("timeout", 1)
    assert "time limit of 1 s" in result.error
    assert "in trouble" in result.error
    assert 1 <= result.seconds < 60


def test_endless_printing_does_not_hide_a_task_from_its_limits() -> None:
    result = run_one(engine_tasks.say_for_ever, time_limit_s=2, memory_limit_mb=1000)
    assert result.kind == "timeout"
    assert result.output.endswith("y\ny\n")
    assert len(result.output) <= 16 * 1024


@pytest.mark.parametrize(("function", "args"), [(engine_tasks.trouble, ("eat", 1)), (engine_tasks.eat_elsewhere, ())])
def test_memory_of_a_task_and_its_children_is_limited(function: Callable[..., Any], args: tuple[Any]) -> None:
    result = run_one(function, *args, memory_limit_mb=250, time_limit_s=60)
    assert (result.kind, result.attempts) == ("memory", 1)
    assert "memory limit of 250 MB" in result.error
    assert result.peak_mb > 250


def test_a_result_counts_as_memory_while_it_is_written() -> None:
    assert run_one(engine_tasks.heavy_to_write, 400, memory_limit_mb=300, time_limit_s=60).kind == "memory"


def test_shared_memory_counts_once() -> None:
    assert run_one(engine_tasks.share, 150, 4, memory_limit_mb=300).kind == "ok"


def test_nothing_survives_its_task(tmp_path: Path) -> None:
    results = run_tasks(engine_tasks.leave_behind, [Task("a", (str(tmp_path),)), Task("b", ("/nowhere",))], "serial")
    assert next(results).value == "done"
    assert not psutil.pid_exists(int((tmp_path / "left").read_text()))
    results.close()


@pytest.mark.parametrize("how", ["return", "die", "hang"])
def test_temporary_files_of_a_task_are_removed_however_it_ends(how: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    result = run_one(engine_tasks.leave_files, str(mark), how, time_limit_s=2 if how == "hang" else None)
    assert result.kind == {"return": "ok", "die": "died", "hang": "timeout"}[how]
    folder = Path(mark.read_text())
    assert folder.parent.name.startswith("marlab-task-") and not folder.parent.exists()
    assert task_folder() is None
    if how == "return":
        assert result.value == str(folder.parent)


def test_temporary_files_are_removed_when_the_caller_goes_away(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    results = run_tasks(engine_tasks.leave_files, [Task("a", (str(mark), "hang")), Task("b", (str(mark), "return"))])
    next(results)
    results.close()
    assert not Path(mark.read_text()).exists()
