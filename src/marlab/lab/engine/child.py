"""One task in one killable child process: the worker's side, the same inside every engine backend.

    worker (this file) --- nursery            imports the task's module once
                              |- keeper       one per task at a time: limits, output, clean-up
                                  |- child    runs the function, its own session and process group

The worker speaks to the keeper through a socket. Closing it, or dying, ends the child and all it started.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import select
import socket
import subprocess
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from marlab.lab.engine.processes import LINUX, start_program
from marlab.lab.engine.wire import (
    FunctionSpec,
    Job,
    Outcome,
    anonymous_file,
    close_files,
    read_file,
    receive_message,
    send_message,
)

_ONE_THREAD = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
_STARTS = 3
"""How often a task is handed to a new keeper when the one before vanished without starting it."""
_POLL_S = 0.5
_CLOSE_S = 20.0


class ChildRunner:
    """Runs jobs of one function, each in its own child process; safe to share between threads."""

    def __init__(self, function: FunctionSpec, preload: bool = LINUX) -> None:
        """`preload`: fork children from a process with the module imported (macOS libraries dislike that)."""
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self._function = function
        self._preload = preload
        self._lock = threading.Lock()
        self._nursery: _Nursery | None = None
        self._idle: list[socket.socket] = []
        self._busy: set[socket.socket] = set()
        self._closed = False

    def run(self, job: Job, cancelled: Callable[[], bool] | None = None) -> Outcome:
        """Run one job to its end and return what became of it; asks `cancelled()` now and then."""
        try:
            return self._run(job, cancelled)
        except Exception:  # out of descriptors, memory or processes: the task must be reported, not lost
            return self._died(f"The worker could not run the task:\n\n{traceback.format_exc()}")

    def _run(self, job: Job, cancelled: Callable[[], bool] | None) -> Outcome:
        for already in range(_STARTS):
            time.sleep(0.05 * already)  # a process that is about to vanish needs a moment to be seen gone
            slot = self._take_slot()
            if slot is None:
                return self._cancelled()
            outcome = None
            try:
                outcome = self._talk(slot, job, cancelled)
            finally:
                self._put_back(slot, usable=outcome is not None and outcome.kind not in ("died", "cancelled"))
            if outcome is not None:
                return outcome
        reason = "The task could not be started: the process that starts children ended at once."
        said = self._nursery.said() if self._nursery is not None else ""
        return self._died(f"{reason}\n\n{said}".strip())

    def close(self) -> None:
        """End every running task and every process behind it; returns when they are gone."""
        with self._lock:
            self._closed = True
            for slot in self._busy:
                with contextlib.suppress(OSError):  # wakes the thread that waits for it
                    slot.shutdown(socket.SHUT_RDWR)
            for slot in self._idle:
                slot.close()
            self._idle.clear()
            if self._nursery is not None:
                self._nursery.close()

    def _talk(self, slot: socket.socket, job: Job, cancelled: Callable[[], bool] | None) -> Outcome | None:
        """Hand a job to a keeper and wait; None when the keeper was gone before it had started it."""
        request = anonymous_file(job.payload)
        limits = {"time_limit_s": job.time_limit_s, "memory_limit_mb": job.memory_limit_mb}
        try:
            send_message(slot, {"key": job.key, **limits}, [request])
        except OSError:
            return self._cancelled() if self._closed else None
        finally:
            close_files([request])
        started = False
        while True:
            # wait first, then read without a timeout: giving up in the middle of a message would lose it
            while cancelled is not None and not _readable(slot, _POLL_S):
                if cancelled():
                    return self._cancelled()
            received = receive_message(slot)
            if received is None:
                if self._closed:
                    return self._cancelled()
                return self._died("The process that watched over the task died.") if started else None
            message, files = received
            if "started" in message:
                started = True
                continue
            payload = read_file(files[0]) if files else b""
            close_files(files)
            return Outcome(payload=payload, worker=self.name, **message)

    def _died(self, error: str) -> Outcome:
        return Outcome("died", error=error, worker=self.name)

    def _cancelled(self) -> Outcome:
        return Outcome("cancelled", error="The task was cancelled.", worker=self.name)

    def _take_slot(self) -> socket.socket | None:
        """A connection to a keeper that waits for work; None once we are closed."""
        with self._lock:
            if self._closed:
                return None
            slot = self._idle.pop() if self._idle else self._open_slot()
            self._busy.add(slot)
            return slot

    def _put_back(self, slot: socket.socket, usable: bool) -> None:
        with self._lock:
            self._busy.discard(slot)
            if usable and not self._closed:
                self._idle.append(slot)
            else:
                slot.close()

    def _open_slot(self) -> socket.socket:
        """Have the nursery fork a keeper at the other end of a new socket; start a nursery if none lives."""
        ours, theirs = socket.socketpair()
        with theirs:
            for _ in range(_STARTS):
                if self._nursery is not None and not self._nursery.alive():
                    if self._nursery.failed():
                        self._preload = False  # importing the module may be what killed it
                    self._nursery.close()
                    self._nursery = None
                if self._nursery is None:
                    self._nursery = _Nursery(self._function, self._preload)
                with contextlib.suppress(OSError):  # it ended this very moment: the next one will do
                    self._nursery.open(theirs)
                    break
        return ours


def _readable(sock: socket.socket, timeout_s: float) -> bool:
    poll = select.poll()  # unlike select(), it takes descriptors above 1023, which a busy worker has
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(1000 * timeout_s))


class _Nursery:
    """Handle of one nursery process (nursery.py)."""

    def __init__(self, function: FunctionSpec, preload: bool) -> None:
        self._control, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed in close()
        environment = dict.fromkeys(_ONE_THREAD, "1") | {"PYTHONHASHSEED": function.hash_seed}
        with theirs:
            self._process = start_program(
                "marlab.lab.engine.nursery", str(theirs.fileno()), env=os.environ | environment,
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            )  # fmt: skip
        with contextlib.suppress(OSError):  # a nursery that cannot start shows in failed() and said()
            send_message(self._control, {"function": dataclasses.asdict(function), "preload": preload})

    def alive(self) -> bool:
        """Whether it still holds its end of the socket, on which it never says anything."""
        try:
            return bool(self._control.recv(1, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def failed(self) -> bool:
        """Whether it, no longer alive, ended in any other way than by its own decision."""
        return self._process.wait() != 0

    def open(self, slot: socket.socket) -> None:
        """Fork a keeper that serves `slot`; OSError when there is nobody to do it."""
        send_message(self._control, {"open": True}, [slot.fileno()])

    def said(self) -> str:
        """The end of what it wrote, which is empty unless something went wrong."""
        return read_file(self._log.fileno())[-4000:].decode(errors="replace").strip()

    def close(self) -> None:
        """Let go of it and wait until it and its keepers have ended."""
        self._control.close()
        self._process.terminate()  # heeded only while it imports, which may take long
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


_runners: dict[FunctionSpec, ChildRunner] = {}
_closed_batches: set[str] = set()
_runners_lock = threading.Lock()


def run_on_worker(function: FunctionSpec, job: Job, cancelled: Callable[[], bool] | None = None) -> Outcome:
    """What a cluster worker does for one task; the runner, and with it the import, is kept for the next one."""
    with _runners_lock:
        if function.batch in _closed_batches:
            return Outcome("cancelled", error="The batch was closed before the task began.")
        runner = _runners.setdefault(function, ChildRunner(function))
    return runner.run(job, cancelled)


def close_batch(batch: str) -> None:
    """End what this worker runs for a batch, and refuse what may still arrive for it."""
    with _runners_lock:
        _closed_batches.add(batch)
        mine = [_runners.pop(function) for function in list(_runners) if function.batch == batch]
    for runner in mine:
        runner.close()


class LocalBackend:
    """A few threads, each of which waits for one child at a time."""

    def __init__(self, function: FunctionSpec, workers: int, ahead: int) -> None:
        """`ahead`: tasks to hold ready, so that no worker waits for a caller who is busy with a result."""
        self._capacity = workers + ahead
        self._runner = ChildRunner(function)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[str, Outcome]] = queue.SimpleQueue()
        # Daemons: an interpreter that exits without closing us must not wait for running tasks.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def capacity(self) -> int:
        """How many tasks may be under way or waiting here."""
        return self._capacity

    def submit(self, job: Job) -> None:
        """Queue one job."""
        self._jobs.put(job)

    def next_outcome(self, wait_s: float | None = None) -> tuple[str, Outcome] | None:
        """Wait for the next job to end, for `wait_s` at most; its key and what became of it, or None."""
        try:
            return self._done.get(timeout=wait_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """End all running children and the threads that wait for them."""
        self._runner.close()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.put((job.key, self._runner.run(job)))


def usable_cores() -> int:
    """Cores that this process may really use: its affinity and the quota of its container, at least one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no cgroup limits here
    return max(1, cores)
