"""Trouble of every kind on every backend; Ray and Dask run real clusters on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks
from marlab.lab.errors import UserError
from tests.lab.engine import tasks_to_do as engine_tasks
from tests.lab.engine.cases import PATIENCE_S, gone, wait_until

# Clusters take seconds to start, and much longer on a busy machine.
CLUSTERS = [pytest.param(name, marks=pytest.mark.long) for name in ("dask", "ray")]
TROUBLE = {7: "hang", 13: "segfault", 21: "eat", 34: "raise"}
KINDS = {"7": "timeout", "13": "died", "21": "memory", "34": "raised"}
REPOSITORY = Path(__file__).parents[3]


def config(engine: str, address: str | None = None) -> EngineConfig:
    return EngineConfig(engine, workers=None if engine == "serial" else 2, address=address)  # type: ignore[arg-type]


def troubled_batch() -> list[Task]:
    return [
        Task(str(n), (TROUBLE.get(n, "none"), n), time_limit_s=1 if n == 7 else 120, memory_limit_mb=300)
        for n in range(50)
    ]


def ports_open_to_others() -> set[str]:
    """Listening addresses of our descendants that are not the loopback interface."""
    loopback = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            connections = process.net_connections(kind="tcp")
        except psutil.NoSuchProcess:
            continue
        found |= {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN and c.laddr.ip not in loopback}
    return found


@pytest.mark.parametrize("engine", ["serial", "local", *CLUSTERS])
def test_four_kinds_of_trouble_in_a_batch_of_fifty(engine: str) -> None:
    before = psutil.Process().children(recursive=True)
    results: dict[str, TaskResult] = {}
    for result in run_tasks(engine_tasks.trouble, troubled_batch(), config(engine)):
        if not results:
            assert ports_open_to_others() == set()
        results[result.key] = result
    assert len(results) == 50
    good = {key: result.value for key, result in results.items() if result.ok}
    assert good == {str(n): n * n for n in range(50) if n not in TROUBLE}
    assert {key: result.kind for key, result in results.items() if not result.ok} == KINDS
    assert {key: results[key].attempts for key in KINDS} == {"7": 1, "13": 2, "21": 1, "34": 1}
    assert "ValueError: no luck with 34" in results["34"].error
    assert "signal 11 (SIGSEGV)" in results["13"].error
    wait_until(lambda: gone([p for p in psutil.Process().children(recursive=True) if p not in before]))


# Clusters that somebody else started: Ray with a secret that both sides know, Dask without keys, as its users have it.
FOREIGN = {
    "ray": """
import sys
from marlab.lab.engine.cluster import local_cluster
with local_cluster("ray", 2) as cluster:
    print(cluster.address, flush=True)
    sys.stdin.read()
""",
    "dask": """
import sys
import dask
from distributed import LocalCluster
dask.config.set({"distributed.scheduler.allowed-failures": 0})  # else Dask itself would try a lost task again
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit=0) as c:
        print(c.scheduler_address, flush=True)
        sys.stdin.read()
""",
}

DRIVER = """
import signal
from marlab.lab.engine import dask as engine_dask
from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from tests.lab.engine.tasks_to_do import wait_here
signal.signal(signal.SIGTERM, signal.default_int_handler)
tasks = (Task(str(n), ({folder!r},)) for n in range(9))
for result in run_tasks(wait_here, tasks, EngineConfig({engine!r}, workers={workers}, address={address!r})):
    print(result)
"""


# What a foreign Ray cluster and its drivers must share: the secret, and that 127.0.0.1 is meant literally.
RAY_SETTINGS = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "x" * 64, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def start_python(code: str, **popen: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env=os.environ | RAY_SETTINGS,
        text=True,
        start_new_session=True,
        **popen,
    )


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A running cluster that is not ours: its engine and address."""
    code = FOREIGN[request.param]
    with start_python(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stdin is not None
        address = process.stdout.readline().strip()
        assert address
        processes = psutil.Process(process.pid).children(recursive=True)
        yield request.param, address
        process.stdin.close()
        process.wait(PATIENCE_S)
    wait_until(lambda: gone(processes))


def waiting_processes(folder: Path, count: int) -> list[psutil.Process]:
    """The processes of `count` running wait_here tasks and of their children, once all have started."""
    wait_until(lambda: len(list(folder.glob("*.pids"))) >= count)
    return [psutil.Process(int(pid)) for note in folder.glob("*.pids") for pid in note.read_text().split()]


@contextlib.contextmanager
def start_driver(engine: str, folder: Path, address: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that runs wait_here tasks; killed, with all that it started, when a test fails on the way."""
    workers = None if engine == "serial" else 2
    code = DRIVER.format(engine=engine, folder=str(folder), address=address, workers=workers)
    with start_python(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        try:
            yield driver
        finally:
            driver.kill()


ENDINGS = [
    ("serial", signal.SIGINT),
    ("local", signal.SIGINT),
    ("local", signal.SIGTERM),
    ("local", signal.SIGKILL),
    *(
        pytest.param(name, n, marks=pytest.mark.long)
        for name in ("dask", "ray")
        for n in (signal.SIGINT, signal.SIGKILL)
    ),
]


@pytest.mark.parametrize(("engine", "number"), ENDINGS)
def test_a_signal_leaves_no_orphan(engine: str, number: signal.Signals, tmp_path: Path) -> None:
    """As at a terminal, SIGINT goes to the whole process group; SIGTERM and SIGKILL to the driver alone."""
    with start_driver(engine, tmp_path) as driver:
        waiting_processes(tmp_path, 1 if engine == "serial" else 2)
        processes = psutil.Process(driver.pid).children(recursive=True)
        assert len(processes) >= 4
        if number == signal.SIGINT:
            os.killpg(driver.pid, number)
        else:
            driver.send_signal(number)
        output, errors = driver.communicate(timeout=PATIENCE_S)
    wait_until(lambda: gone(processes))
    assert output == ""
    if number != signal.SIGKILL:
        assert errors.rstrip().endswith("KeyboardInterrupt")


def test_closing_on_a_foreign_cluster_ends_our_tasks_only(cluster: tuple[str, str], tmp_path: Path) -> None:
    engine, address = cluster
    with start_driver(engine, tmp_path, address) as driver:
        processes = waiting_processes(tmp_path, 2)
        os.killpg(driver.pid, signal.SIGINT)
        driver.communicate(timeout=PATIENCE_S)
    wait_until(lambda: gone(processes))


def test_losing_the_driver_ends_its_tasks_on_a_foreign_cluster(cluster: tuple[str, str], tmp_path: Path) -> None:
    engine, address = cluster
    with start_driver(engine, tmp_path, address) as driver:
        processes = waiting_processes(tmp_path, 2)
        driver.kill()
        driver.communicate(timeout=PATIENCE_S)
    wait_until(lambda: gone(processes))


@pytest.fixture
def reachable(cluster: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> EngineConfig:
    """The foreign cluster as an engine for this very process."""
    engine, address = cluster
    if engine == "ray":
        from ray._private import ray_constants

        monkeypatch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
        for name, value in RAY_SETTINGS.items():
            monkeypatch.setenv(name, value)
    return config(engine, address)


def test_a_killed_cluster_worker_costs_one_attempt(
    reachable: EngineConfig, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tasks = [Task(str(n), (2, str(tmp_path / "marker"))) for n in range(10)]
    results = list(run_tasks(engine_tasks.kill_ancestor_once, tasks, reachable))
    assert [result.value for result in results] == ["done"] * 10
    assert sorted(result.attempts for result in results) == [1] * 9 + [2]
    assert capfd.readouterr() == ("", "")


def test_a_cluster_gives_the_same_results(reachable: EngineConfig) -> None:
    """Also of a careless function, which draws from global generators and depends on string hashes."""
    tasks = [Task(str(n)) for n in range(8)]
    there, here = (
        {result.key: result.value for result in run_tasks(engine_tasks.careless, tasks, engine)}
        for engine in (reachable, "serial")
    )
    assert there == here
    assert None not in here.values()


def test_a_connection_of_the_caller_is_shared_and_kept(reachable: EngineConfig) -> None:
    if reachable.engine != "ray":
        pytest.skip("only Ray ties a process to one cluster")
    import ray

    ray.init(reachable.address, log_to_driver=False, logging_level="critical")
    try:
        (result,) = run_tasks(engine_tasks.square, [Task("a", (3,))], "ray")
        assert result.value == 9
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_large_arguments_and_results_cross_a_cluster(reachable: EngineConfig) -> None:
    array = engine_tasks.large(50)
    (result,) = run_tasks(engine_tasks.plus_one, [Task("a", (array,))], reachable)
    assert result.value.nbytes == array.nbytes
    assert (result.value == 8).all()


@pytest.mark.parametrize("engine", CLUSTERS)
def test_an_address_where_nobody_answers(engine: str) -> None:
    with pytest.raises(UserError, match=r"answers at '127\.0\.0\.1:9'"):
        list(run_tasks(engine_tasks.square, [Task("a", (1,))], config(engine, "127.0.0.1:9")))
