"""The keeper: starts one child process for one task at a time and answers for it.

It measures the child's time and memory, collects what it prints, ends it and everything it started, and tells
the worker how it went. It never runs the task's code itself, so nothing a task does can hang or crash it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marlab.lab.engine.processes import adopt_orphans, descendants, end_descendants, proportional_mb, resident_mb
from marlab.lab.engine.wire import Kind, anonymous_file, close_files, read_file, receive_message, send_message

TASK_FOLDER = "MARLAB_TASK_FOLDER"
"""Environment variable of a child: a folder for temporary files that is removed however the task ends."""
VALUE, RAISED = b"v", b"e"
"""The child's last word: the result file holds a pickled value, or the text of a traceback."""

_OUTPUT_BYTES = 16 * 1024
_PIPE_BYTES = 1024 * 1024
_LOOK_S = 0.05
"""Seconds between looks at the memory of a child that has a memory limit."""
_LOOK_SHARE = 20
"""A look that takes t seconds is followed by at least this many times t without one (machines with very many
processes are slow to look through)."""
_MAXRSS_PER_MB = 2**20 if sys.platform == "darwin" else 2**10
_STACK_S = 5.0
"""Time a child gets to write down where it was before it is ended for its time limit."""
_KILL_S = 0.1
"""Time a killed child gets to vanish before we look through all processes of the machine for its kin."""


@dataclass(frozen=True)
class ChildFiles:
    """What a child process is given: the ends that it reads from and writes to."""

    request: int
    """Pickled (args, kwargs)."""
    result: int
    """Pickled value, or traceback text."""
    stack: int
    """Where the interpreter writes its stack when it crashes."""
    output: int
    """Pipe that takes the place of stdout and stderr."""
    verdict: int
    """Pipe for the last word, VALUE or RAISED."""


def task_folder() -> str | None:
    """Inside a task, where to put temporary files (`tempfile.mkdtemp(dir=task_folder())`); None outside of one."""
    return os.environ.get(TASK_FOLDER)


RunChild = Callable[[str, ChildFiles], None]
"""What happens in the child process: called with the task's key, must end the process itself."""


class _Child:
    """One running child as its keeper sees it."""

    def __init__(self, pid: int, output: int, verdict: int, folder: str) -> None:
        self.pid = pid
        self.folder = folder
        self.output = output
        self.verdict = verdict
        self.started = time.monotonic()
        self.tail = bytearray()
        self.word = b""
        self.status: int | None = None  # wait status, once it has ended
        self.peak_mb = 0.0

    def elapsed(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.started

    def read_output(self) -> bool:
        """Take what it has printed, keeping only the end; False when nothing more can come.

        Takes a pipe's worth at most: a task that never stops printing must not keep us from its limits.
        """
        try:
            chunk = os.read(self.output, _PIPE_BYTES)
        except BlockingIOError:
            return True
        self.tail = (self.tail + chunk)[-_OUTPUT_BYTES:]
        return bool(chunk)

    def reap(self) -> bool:
        """Collect whatever has ended, the child or orphans we adopted; True while any process remains."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.pid:
                    self.status = status
                    self.peak_mb = max(self.peak_mb, usage.ru_maxrss / _MAXRSS_PER_MB)
        return False

    def memory_mb(self, enough_mb: float, result: int) -> float:
        """Memory of the child, of all processes it started, and of the result that it is writing."""
        pids = descendants(os.getpid())
        written_mb = os.fstat(result).st_size / 2**20
        used_mb = resident_mb(pids) + written_mb
        if used_mb > enough_mb:  # shared pages may have been counted several times: look closely
            used_mb = proportional_mb(pids) + written_mb
        self.peak_mb = max(self.peak_mb, used_mb)
        return used_mb

    def ask_where(self) -> None:
        """Let the interpreter write its stack (that is what SIGABRT makes faulthandler do)."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGABRT)
        self._await_end(_STACK_S)

    def end(self) -> None:
        """Kill it, its process group and everything that descends from it."""
        if self.status is None:  # else its number may belong to someone else by now
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._await_end(_KILL_S)
        end_descendants(self.reap)
        self.read_output()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _await_end(self, patience_s: float) -> None:
        give_up = time.monotonic() + patience_s
        while self.reap() and self.status is None and time.monotonic() < give_up:
            time.sleep(0.0005)


def keep(worker: socket.socket, run_child: RunChild, idle_s: float | None) -> None:
    """Serve one worker until it goes away: one job after the other, each in a child of its own."""
    adopt_orphans()
    while select.select([worker], [], [], idle_s)[0]:
        received = receive_message(worker)
        if received is None:
            return
        job, (request,) = received
        result, stack = anonymous_file(), anonymous_file()
        child = _start(worker, run_child, job["key"], request, result, stack)
        try:
            send_message(worker, {"started": child.pid})
            kind, reason = _watch(child, worker, job["time_limit_s"], job["memory_limit_mb"], result)
            seconds = child.elapsed()
        finally:
            child.end()
            close_files([child.output, child.verdict])
        if kind == "raised":
            reason = read_file(result).decode(errors="replace")
        elif kind != "ok":
            reason += _where(read_file(stack).decode(errors="replace"))
        report = {
            "kind": kind, "error": reason, "output": bytes(child.tail).decode(errors="replace"), "seconds": seconds,
            "peak_mb": child.peak_mb,
        }  # fmt: skip
        send_message(worker, report, [result] if kind == "ok" else [])
        close_files([request, result, stack])


def _start(worker: socket.socket, run_child: RunChild, key: str, request: int, result: int, stack: int) -> _Child:
    output_read, output_write = os.pipe()
    verdict_read, verdict_write = os.pipe()
    folder = tempfile.mkdtemp(prefix="marlab-task-")  # ours to remove: a child that is killed cannot
    pid = os.fork()
    if pid == 0:
        try:
            os.environ[TASK_FOLDER] = folder
            worker.close()
            close_files([output_read, verdict_read])
            run_child(key, ChildFiles(request, result, stack, output_write, verdict_write))
        finally:
            os._exit(1)
    close_files([output_write, verdict_write])
    os.set_blocking(output_read, False)
    return _Child(pid, output_read, verdict_read, folder)


def _watch(
    child: _Child, worker: socket.socket, time_limit_s: float | None, memory_limit_mb: float | None, result: int
) -> tuple[Kind, str]:
    """Wait until the child is done, dead or over a limit; returns how it went and why."""
    next_look = time.monotonic() + _LOOK_S
    sources: list[Any] = [worker, child.output, child.verdict]
    while True:
        # an exit without a last word is only seen by asking, so ask often once the pipe has closed
        wait_s = 1.0 if child.verdict in sources else 0.01
        if time_limit_s is not None:
            wait_s = min(wait_s, time_limit_s - child.elapsed())
        if memory_limit_mb is not None:
            wait_s = min(wait_s, next_look - time.monotonic())
        ready = select.select(sources, [], [], max(wait_s, 0.0))[0]
        if worker in ready:  # it never speaks while a task runs: it cancelled, or it died
            child.end()
            os._exit(0)
        if child.output in ready and not child.read_output():
            sources.remove(child.output)
        if child.verdict in ready:
            sources.remove(child.verdict)
            child.word = os.read(child.verdict, 1)
            if child.word:
                return ("ok", "") if child.word == VALUE else ("raised", "")
        child.reap()
        if child.status is not None:
            return "died", _reason_of_death(child.status)
        if time_limit_s is not None and child.elapsed() >= time_limit_s:
            child.ask_where()
            return "timeout", f"The task ran longer than its time limit of {time_limit_s:g} s and was ended."
        if memory_limit_mb is not None and time.monotonic() >= next_look:
            began = time.monotonic()
            used_mb = child.memory_mb(memory_limit_mb, result)
            if used_mb > memory_limit_mb:
                return "memory", (
                    f"The task and the processes it started held {used_mb:.0f} MB, more than its memory limit "
                    f"of {memory_limit_mb:g} MB, and were ended."
                )
            next_look = time.monotonic() + max(_LOOK_S, _LOOK_SHARE * (time.monotonic() - began))


def _reason_of_death(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"The task ended its process with exit code {code} before it returned a result."
    name = signal.Signals(-code).name if -code in set(signal.Signals) else "unknown"
    reason = f"The task's process was killed by signal {-code} ({name})."
    if -code == signal.SIGKILL:
        reason += " Nothing here sent it: often it is the kernel, because the machine ran out of memory."
    return reason


def _where(stack: str) -> str:
    """The interpreter's own description of where it was, reduced to the task's side of it."""
    ours = f'  File "{os.path.dirname(os.path.abspath(__file__))}{os.sep}'
    noise = ("Fatal Python error", "Current thread", "Extension modules:", '  File "<string>"', ours)
    text = "\n".join(line for line in stack.splitlines() if not line.startswith(noise)).strip("\n")
    return f"\n\nWhere it was (innermost call first):\n{text}" if text else ""
