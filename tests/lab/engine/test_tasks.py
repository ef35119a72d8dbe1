"""The engine's promises that do not depend on the backend, shown on serial and local."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marlab.lab.engine.child import usable_cores
from marlab.lab.engine.tasks import EngineConfig, EngineFlags, Task, TaskResult, config_of, parse_parallelism, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from tests.lab.engine import tasks_to_do as engine_tasks
from tests.lab.engine.cases import run_one, squares


@pytest.mark.parametrize("engine", ["serial", "local"])
def test_every_task_gives_its_own_result(engine: str) -> None:
    results = list(run_tasks(engine_tasks.square, squares(20), engine))
    assert {result.key: result.value for result in results} == {f"square {n}": n * n for n in range(20)}
    assert all(result.ok and result.attempts == 1 and result.error == "" for result in results)


def test_arguments_by_position_and_by_name() -> None:
    (result,) = run_tasks(engine_tasks.trouble, [Task("a", ("fine",), {"number": 3})], "serial")
    assert result.value == 9


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


@pytest.mark.parametrize("retries", [0, 2])
def test_retries_are_counted(retries: int) -> None:
    assert run_one(engine_tasks.leave, "os._exit", retries=retries).attempts == retries + 1


@pytest.mark.parametrize(("generation", "attempts"), [(0, 2), (1, 1)])
def test_losing_the_processes_in_between(generation: int, attempts: int, tmp_path: Path) -> None:
    """A lost keeper costs an attempt; a lost nursery costs nothing and is replaced."""
    tasks = [Task(str(n), (generation, str(tmp_path / "marker"))) for n in range(4)]
    results = list(run_tasks(engine_tasks.kill_ancestor_once, tasks, "serial"))
    assert [result.value for result in results] == ["done"] * 4
    assert [result.attempts for result in results] == [attempts, 1, 1, 1]


def test_a_task_may_run_a_batch() -> None:
    assert run_one(engine_tasks.nested, [1, 2, 3]).value == [1, 4, 9]


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
        lambda: EngineConfig(workers=1_000_000),
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
    monkeypatch.setattr("marlab.lab.extras.find_spec", lambda _: None)
    with pytest.raises(UserError, match=rf"pip install 'marlab\[{name}\]'"):
        run_tasks(engine_tasks.square, squares(1), name)


@dataclass(frozen=True)
class Config:
    games: int = 3


@dataclass(frozen=True)
class Command(EngineFlags, Config):
    """A command's flags."""


def test_flags_name_an_engine() -> None:
    assert EngineFlags().engine_config() == EngineConfig("local")
    flags = EngineFlags("ray", workers=4, address="127.0.0.1:6379")
    assert flags.engine_config() == EngineConfig("ray", 4, "127.0.0.1:6379")
    with pytest.raises(UserError, match="takes no address"):
        EngineFlags(address="127.0.0.1:1").engine_config()


def test_where_work_is_done_is_no_part_of_the_config() -> None:
    assert config_of(Command(engine="serial", quiet=True, games=5), Config) == Config(games=5)


def test_a_batch_that_should_stop_ends_what_still_runs(tmp_path: Path) -> None:
    tasks = [Task("quick", (str(tmp_path),)), Task("endless", (str(tmp_path / "never"),))]
    got: list[TaskResult] = []
    for result in run_tasks(engine_tasks.wait_for, tasks, EngineConfig("local", workers=2), stop=lambda: bool(got)):
        got.append(result)
    assert [result.key for result in got] == ["quick"]
    assert list(run_tasks(engine_tasks.square, [Task("a", (2,))], "serial", stop=lambda: True)) == []
