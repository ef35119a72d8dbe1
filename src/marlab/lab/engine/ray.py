"""The engine `ray`: tasks on the workers of a Ray cluster, each in a child process of its worker."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import secrets
import time
from collections.abc import Iterator
from typing import Any

import ray
from ray import exceptions

from marlab.lab.engine.child import run_on_worker, usable_cores
from marlab.lab.engine.cluster import knock, local_cluster
from marlab.lab.engine.wire import FunctionSpec, Job, Outcome
from marlab.lab.errors import UserError

_COUNT_EVERY_S = 5.0
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}


class RayBackend:
    """Submits jobs as Ray tasks of one core each and collects them as they finish."""

    def __init__(self, function: FunctionSpec, address: str | None, workers: int | None) -> None:
        self._function = function
        self._most = workers
        self._under_way: dict[Any, str] = {}  # by Ray's reference: our key
        self._capacity, self._counted = 0, 0.0
        self._cleanup = contextlib.ExitStack()
        if not ray.is_initialized():  # else the caller has connected this process already: share that
            self._connect(address, workers)
        # Ray must not retry by itself: the engine counts attempts, and the same way on every backend.
        self._run = ray.remote(num_cpus=1, max_retries=0)(run_on_worker)
        self._cleanup.callback(self._end_tasks)

    def _connect(self, address: str | None, workers: int | None) -> None:
        try:
            if address is None:
                self._cleanup.enter_context(loopback_only())
                self._cleanup.enter_context(_secret())  # the cluster inherits it with our environment
                address = self._cleanup.enter_context(local_cluster("ray", workers or usable_cores())).address
            self._cleanup.enter_context(_connection(address))
        except BaseException:
            self._cleanup.close()
            raise

    def capacity(self) -> int:
        """Twice the cores of the cluster as it is now, so that none waits for the next task."""
        if time.monotonic() - self._counted > _COUNT_EVERY_S:
            self._capacity = max(1, 2 * int(ray.cluster_resources().get("CPU", 0)))
            self._counted = time.monotonic()
        return self._capacity if self._most is None else min(self._capacity, self._most)

    def submit(self, job: Job) -> None:
        """Hand one job to Ray."""
        self._under_way[self._run.remote(self._function, job)] = job.key

    def next_outcome(self, wait_s: float | None = None) -> tuple[str, Outcome] | None:
        """Wait for the next job to end, for `wait_s` at most; its key and what became of it, or None."""
        ended, _ = ray.wait(list(self._under_way), num_returns=1, timeout=wait_s)
        return (self._under_way.pop(ended[0]), _outcome(ended[0])) if ended else None

    def close(self) -> None:
        """End our tasks wherever they run, then the connection and the cluster if it is ours."""
        self._cleanup.close()

    def _end_tasks(self) -> None:
        for reference in self._under_way:
            # force ends the worker process; its children notice that at once and end with it
            with contextlib.suppress(Exception):  # finished in the meantime, or the cluster is gone
                ray.cancel(reference, force=True)


def _outcome(reference: Any) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
        return outcome
    except exceptions.TaskCancelledError:
        return Outcome("cancelled", error="The task was cancelled on the Ray cluster.")
    except exceptions.RayTaskError as error:
        return Outcome("raised", error=f"The Ray worker could not run the task: {error}")
    except exceptions.RayError as error:
        return Outcome("died", error=f"The Ray worker died while it ran the task: {error}")


@contextlib.contextmanager
def _connection(address: str) -> Iterator[None]:
    """This process as a driver of a cluster that somebody else runs."""
    with quiet():
        try:
            knock(address)  # Ray itself would try for many minutes, deaf to Ctrl-C
            _forget_token()
            ray.init(address, **QUIET)
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"No Ray cluster answers at {address!r} ({reason}); give the address that `ray start --head` prints."
            ) from None
        try:
            yield
        finally:
            ray.shutdown()


@contextlib.contextmanager
def loopback_only() -> Iterator[None]:
    """Have Ray listen on 127.0.0.1 alone, which it offers under a name made for other systems."""
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False  # read when the process imported Ray, so the variable is too late
    with _environment(RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0"):
        try:
            yield
        finally:
            ray_constants.ENABLE_RAY_CLUSTER = before


@contextlib.contextmanager
def _secret() -> Iterator[None]:
    """A token known to this process and its cluster only: other users of the machine must not run code in it."""
    with _environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32)):
        yield
    _forget_token()


def _forget_token() -> None:
    """Make Ray read the token from the environment again; it keeps the first one that it saw."""
    raylet: Any = importlib.import_module("ray._raylet")
    if hasattr(raylet, "AuthenticationTokenLoader"):  # else a Ray from before there were tokens
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No usage reports, no advice about hidden GPUs, and no commentary; what matters reaches us as results."""
    worker: Any = importlib.import_module("ray._private.worker")
    level, prints = logging.getLogger("ray").level, worker._worker_logs_enabled
    worker._worker_logs_enabled = False  # the only switch for what it prints when a worker dies
    with _environment(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0"):
        try:
            yield
        finally:
            logging.getLogger("ray").setLevel(level)
            worker._worker_logs_enabled = prints


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
