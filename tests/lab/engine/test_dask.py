"""The engine dask by itself: what becomes of a future, and of a scheduler that is lost."""

from __future__ import annotations

import logging
import time
import types

import psutil
import pytest
from distributed.scheduler import KilledWorker

from marlab.lab.engine import dask as engine_dask
from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.lab.engine.wire import Outcome
from tests.lab.engine.cases import gone, wait_until


def is_node(process: psutil.Process) -> bool:
    """Whether it is the program behind a cluster."""
    try:
        return "marlab.lab.engine.nodes" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # also one that has ended and waits to be noticed
        return False


@pytest.mark.long
def test_a_lost_scheduler_is_an_error_and_no_endless_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_dask, "_CONNECT_S", 10)
    results = run_tasks(time.sleep, [Task("now", (0,)), Task("never", (3600,))], EngineConfig("dask", workers=1))
    assert next(results).ok
    (node,) = (p for p in psutil.Process().children() if is_node(p))
    processes = node.children(recursive=True)
    node.kill()
    with pytest.raises(ConnectionError, match="is gone"):
        next(results)
    wait_until(lambda: gone(processes))


class Ended:
    """A future of Dask that has ended in some way."""

    def __init__(self, status: str, result: Outcome | Exception) -> None:
        self.status, self._result = status, result

    def result(self) -> Outcome:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


def outcome_of(future: Ended, client: str = "running") -> Outcome:
    backend = engine_dask.DaskBackend.__new__(engine_dask.DaskBackend)
    backend._client, backend._address = types.SimpleNamespace(status=client), "tcp://127.0.0.1:1"  # type: ignore[assignment]
    return backend._outcome(future)  # type: ignore[arg-type]


def test_every_end_of_a_future_is_an_outcome() -> None:
    fine = Outcome("ok", b"payload")
    assert outcome_of(Ended("finished", fine)) is fine
    assert outcome_of(Ended("cancelled", fine)).kind == "cancelled"
    lost = outcome_of(Ended("error", KilledWorker("a task", types.SimpleNamespace(address="tcp://127.0.0.1:2"), 1)))
    assert lost.kind == "died" and "The Dask worker died" in lost.error
    other = outcome_of(Ended("error", ModuleNotFoundError("marlab")))
    assert other.kind == "raised" and "ModuleNotFoundError('marlab')" in other.error
    with pytest.raises(ConnectionError, match=r"at tcp://127\.0\.0\.1:1 is gone"):
        outcome_of(Ended("cancelled", fine), client="closed")


def test_dask_is_silent_only_while_it_works_for_us() -> None:
    log = logging.getLogger("distributed")
    before = log.level
    with engine_dask._quiet_logs():
        assert log.level == logging.CRITICAL
    assert log.level == before
