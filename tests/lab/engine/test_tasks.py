"""The engine's promises that do not depend on the backend, shown on serial and local."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from marlab.lab.engine import tasks as engine_module
from marlab.lab.engine.local import usable_cores
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, parse_parallelism, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from tests.lab.engine import tasks_to_do as engine_tasks


def run_one(function: Callable[..., Any], *args: Any, retries: int = 1, **limits: float) -> TaskResult:
    (result,) = run_tasks(function, [Task("only", args, **limits)], EngineConfig("serial", retries=retries))
    return result


def squares(count: int) -> Iterator[Task]:
    return (Task(f"square {n}", (n,)) for n in range(count))


@pytest.mark.parametrize("engine", ["serial", "local"])
def test_every_task_gives_its_own_result(engine: str) -> None:
    results = list(run_tasks(engine_tasks.square, squares(20), engine))
    assert {result.key: result.value for result in results} == {f"square {n}": n * n for n in range(20)}
    assert all(result.ok and result.attempts == 1 and result.error == "" for result in results)


def test_results_come_as_they_finish(tmp_path: Path) -> None:
    go = tmp_path / "go"
    tasks = [Task("slow", (str(go),)), Task("quick", (str(tmp_path),))]
    results = run_tasks(engine_tasks.wait_for, tasks, EngineConfig("local", workers=2))
    assert next(results).key == "quick"
    go.touch()
    assert [result.key for result in results] == ["slow"]


def test_arguments_by_position_and_by_name() -> None:
    (result,) = run_tasks(engine_tasks.trouble, [Task("a", ("fine",), {"number": 3})], "serial")
    assert result.value == 9


def test_tasks_are_taken_only_as_they_are_needed() -> None:
    taken = 0

    def endless() -> Iterator[Task]:
        nonlocal taken
        while True:
            taken += 1
            yield Task(str(taken), (taken,))

    results = run_tasks(engine_tasks.square, endless(), EngineConfig("local", workers=2))
    for _ in range(10):
        next(results)
    results.close()
    assert taken <= 10 + 4  # two at work, two ready


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


def test_what_a_task_prints_is_kept() -> None:
    assert run_one(engine_tasks.say, "hello").output == "hello\nand this on stderr\n"
    result = run_one(engine_tasks.say_and_die, "last words")
    assert (result.kind, result.output) == ("died", "last words\n")
    assert run_one(engine_tasks.say, "x" * 100_000).output.endswith("x\nand this on stderr\n")


def test_a_large_result_arrives_whole() -> None:
    value = run_one(engine_tasks.large, 200).value
    assert value.nbytes == 200 * 2**20
    assert np.all(value[:: 2**20] == 7)


def test_a_large_argument_arrives_whole() -> None:
    assert run_one(len, b"x" * (64 * 2**20)).value == 64 * 2**20


@pytest.mark.parametrize(
    ("function", "args", "reason"),
    [
        (engine_tasks.trouble, ("raise", 5), "ValueError: no luck with 5"),
        (engine_tasks.unpicklable, (), "result, of type function, cannot be pickled"),
        (engine_tasks.unloadable, (), "result cannot be loaded here"),
        (engine_tasks.rude, (), "Rude"),
        (engine_tasks.leave, ("sys.exit",), "SystemExit: 3"),
        (engine_tasks.square, (lambda: 1,), "arguments cannot be pickled"),
        (engine_tasks.square, (1, 2), "positional argument"),
    ],
)
def test_an_exception_is_reported_and_not_retried(function: Callable[..., Any], args: tuple[Any], reason: str) -> None:
    result = run_one(function, *args)
    assert (result.ok, result.kind, result.value) == (False, "raised", None)
    assert reason in result.error
    assert result.attempts <= 1


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


@pytest.mark.parametrize("retries", [0, 2])
def test_retries_are_counted(retries: int) -> None:
    assert run_one(engine_tasks.leave, "os._exit", retries=retries).attempts == retries + 1


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


def test_of_two_copies_that_return_the_first_one_counts() -> None:
    assert run_one(engine_tasks.return_twice).value > 0


def test_nothing_survives_its_task(tmp_path: Path) -> None:
    results = run_tasks(engine_tasks.leave_behind, [Task("a", (str(tmp_path),)), Task("b", ("/nowhere",))], "serial")
    assert next(results).value == "done"
    assert not psutil.pid_exists(int((tmp_path / "left").read_text()))
    results.close()


@pytest.mark.parametrize(("generation", "attempts"), [(0, 2), (1, 1)])
def test_losing_the_processes_in_between(generation: int, attempts: int, tmp_path: Path) -> None:
    """A lost keeper costs an attempt; a lost nursery costs nothing and is replaced."""
    tasks = [Task(str(n), (generation, str(tmp_path / "marker"))) for n in range(4)]
    results = list(run_tasks(engine_tasks.kill_ancestor_once, tasks, "serial"))
    assert [result.value for result in results] == ["done"] * 4
    assert [result.attempts for result in results] == [attempts, 1, 1, 1]


def test_a_task_may_run_a_batch() -> None:
    assert run_one(engine_tasks.nested, [1, 2, 3]).value == [1, 4, 9]


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


def test_no_process_is_left_after_a_batch() -> None:
    before = set(psutil.Process().children(recursive=True))
    list(run_tasks(engine_tasks.square, squares(4), "local"))
    results = run_tasks(time.sleep, [Task(str(n), (3600,)) for n in range(6)] + [Task("now", (0,))], "local")
    first = next(run_tasks(engine_tasks.square, squares(4), "local"))  # dropped half-way
    assert first.ok
    results.close()  # never started
    assert set(psutil.Process().children(recursive=True)) <= before


def test_progress_counts_failures(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [Task(str(n), ("raise" if n == 2 else "none", n)) for n in range(5)]
    list(run_tasks(engine_tasks.trouble, tasks, "local", progress="squaring"))
    assert capsys.readouterr().err.startswith("squaring: 5/5 tasks (100%) in ")
    with Progress("mine", total=5, quiet=True) as bar:
        list(run_tasks(engine_tasks.trouble, iter(tasks), "serial", progress=bar))
    assert (bar.done, bar.counters) == (5, {"failures": 1})


def outer() -> Callable[[], int]:
    def inner() -> int:
        return 1

    return inner


@pytest.mark.parametrize("function", [lambda: 1, outer(), [].append, print, int("1").__add__])
def test_a_function_that_cannot_be_imported_is_refused(function: Callable[..., Any]) -> None:
    if function is print:  # importable, and fine
        assert run_one(print).ok
        return
    with pytest.raises(UserError, match=r"cannot be imported by other processes: it must be defined with def"):
        run_tasks(function, squares(1))


def test_a_function_of_the_script_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_tasks.square, "__module__", "__main__")
    with pytest.raises(UserError, match="put it into a module"):
        run_tasks(engine_tasks.square, squares(1))


def test_two_tasks_with_one_key_are_refused() -> None:
    twins = [Task("twin", (1,)), Task("other", (2,)), Task("twin", (3,))]
    with pytest.raises(UserError, match="Two tasks have the key 'twin'"):
        run_tasks(engine_tasks.square, twins)
    with pytest.raises(UserError, match="Two tasks have the key 'twin'"):
        list(run_tasks(engine_tasks.square, iter(twins), "serial"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Task(""),
        lambda: Task("a", time_limit_s=0),
        lambda: Task("a", memory_limit_mb=-1),
        lambda: EngineConfig("cloud"),  # type: ignore[arg-type]
        lambda: EngineConfig(workers=0),
        lambda: EngineConfig(retries=-1),
        lambda: EngineConfig("serial", workers=2),
        lambda: EngineConfig("local", address="127.0.0.1:1"),
        lambda: parse_parallelism("loky:2"),
        lambda: parse_parallelism("loky:many"),
        lambda: parse_parallelism("spark"),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(UserError):
        make()


def test_old_spellings() -> None:
    assert parse_parallelism("serial") == EngineConfig("serial")
    assert parse_parallelism("parallel") == parse_parallelism("loky") == EngineConfig("local")
    assert parse_parallelism("loky:1") == EngineConfig("local", workers=usable_cores())
    assert parse_parallelism("loky:0.01") == EngineConfig("local", workers=1)
    assert parse_parallelism("dask") == EngineConfig("dask")
    assert parse_parallelism("ray") == EngineConfig("ray")


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_missing_extra_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=rf"pip install 'marlab\[{name}\]'"):
        run_tasks(engine_tasks.square, squares(1), name)


def test_cores_respect_affinity() -> None:
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))
