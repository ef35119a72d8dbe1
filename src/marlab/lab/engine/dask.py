"""The engine `dask`: tasks on the workers of a Dask cluster, each in a child process of its worker."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Iterator, Mapping

import dask
from distributed import Client, Future, get_worker
from distributed.scheduler import KilledWorker
from distributed.security import Security

from marlab.lab.engine.child import close_batch, run_on_worker, usable_cores
from marlab.lab.engine.cluster import knock, local_cluster
from marlab.lab.engine.wire import FunctionSpec, Job, Outcome
from marlab.lab.errors import UserError

_CONNECT_S = 30
_WORKERS_S = 60
_COUNT_EVERY_S = 5.0
_LOGGERS = ("distributed", "distributed.client", "tornado")
_LARGE = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
"""Large arguments are what the caller asked for; Dask's advice about them does not fit single tasks."""


class DaskBackend:
    """Submits jobs to a scheduler and collects them as they finish."""

    def __init__(self, function: FunctionSpec, address: str | None, workers: int | None) -> None:
        self._function = function
        self._most = workers
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._under_way: dict[str, tuple[str, Future]] = {}  # by Dask's key: ours, and the future
        self._submitted = 0
        self._capacity, self._counted = 0, 0.0
        self._cleanup = contextlib.ExitStack()
        try:
            self._cleanup.enter_context(_quiet_logs())
            keys: dict[str, str] = {}
            if address is None:
                address, keys = self._cleanup.enter_context(local_cluster("dask", workers or usable_cores()))
            self._address = address
            self._client = _connect(address, keys)
            self._cleanup.callback(self._client.close)
        except BaseException:
            self._cleanup.close()
            raise
        self._cleanup.callback(self._end_tasks)

    def capacity(self) -> int:
        """Twice the threads of the cluster as it is now, so that none waits for the next task."""
        if time.monotonic() - self._counted > _COUNT_EVERY_S:
            self._capacity = max(1, 2 * sum(self._client.nthreads().values()))
            self._counted = time.monotonic()
        return self._capacity if self._most is None else min(self._capacity, self._most)

    def submit(self, job: Job) -> None:
        """Send one job to the scheduler."""
        self._submitted += 1
        key = f"marlab-{self._function.batch}-{self._submitted}"
        with dask.config.set(_LARGE):
            future = self._client.submit(run_on_dask, self._function, job, key=key, pure=False)
        self._under_way[key] = (job.key, future)
        future.add_done_callback(self._done.put)

    def next_outcome(self, wait_s: float | None = None) -> tuple[str, Outcome] | None:
        """Wait for the next job to end, for `wait_s` at most; its key and what became of it, or None."""
        try:
            future = self._done.get(timeout=wait_s)
        except queue.Empty:
            return None
        key, _ = self._under_way.pop(str(future.key))
        return key, self._outcome(future)

    def close(self) -> None:
        """End our tasks wherever they run, then the connection and the cluster if it is ours."""
        self._cleanup.close()

    def _outcome(self, future: Future) -> Outcome:
        if future.status == "cancelled":
            if self._client.status != "running":
                raise ConnectionError(f"The Dask scheduler at {self._address} is gone.")
            return Outcome("cancelled", error="The task was cancelled on the Dask cluster.")
        try:
            outcome: Outcome = future.result()
            return outcome
        except KilledWorker as error:
            return Outcome("died", error=f"The Dask worker died while it ran the task: {error}")
        except Exception as error:
            return Outcome("raised", error=f"The Dask worker could not run the task: {error!r}")

    def _end_tasks(self) -> None:
        # Whatever fails here fails because the cluster is gone, and its tasks with it.
        with contextlib.suppress(Exception):
            self._client.cancel([future for _, future in self._under_way.values()], force=True)
            self._client.run(close_batch, self._function.batch, on_error="ignore")


def run_on_dask(function: FunctionSpec, job: Job) -> Outcome:
    """Runs in a thread of a Dask worker. Ends the task when nobody waits for it any more."""
    worker = get_worker()
    key = worker.get_current_task()

    def unwanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return run_on_worker(function, job, unwanted)


def _connect(address: str, keys: Mapping[str, str]) -> Client:
    security = Security(**keys, require_encryption=True) if keys else None
    try:
        knock(address)
        client = Client(address, security=security, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(
            f"No Dask scheduler answers at {address!r} ({error}); give the address that `dask scheduler` "
            "prints, such as tcp://HOST:8786."
        ) from None
    try:
        client.wait_for_workers(1, timeout=_WORKERS_S)
    except TimeoutError:
        client.close()
        raise UserError(
            f"The Dask scheduler at {address!r} has had no worker for {_WORKERS_S} s; start some with "
            f"`dask worker {address}`."
        ) from None
    return client


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep Dask's running commentary off the terminal; what matters reaches the caller as results."""
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
