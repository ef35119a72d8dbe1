"""The nursery: a process that has imported the task's module and forks from there, so an import costs once.

A worker starts one nursery per batch (see child.py). On request the nursery forks a keeper, and the keeper
forks one child per task; all of them find the module, torch or a simulator already in memory. It is a program
of its own rather than multiprocessing's fork server, because that one imports the caller's script again, reads
its thread settings from the caller, and is forbidden inside the daemonic workers of a Dask cluster.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import hashlib
import importlib
import os
import pickle
import random
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from marlab.lab.engine.keeper import RAISED, VALUE, ChildFiles, keep
from marlab.lab.engine.processes import die_with_parent
from marlab.lab.engine.wire import FunctionSpec, receive_message

_PRELOAD_LIMIT_S = 300
"""A module that takes longer to import is left to the children, whose time limit covers it."""

_HALF_ERROR = 50_000
"""Characters kept from each end of a very long error."""


def main() -> None:
    """Serve the worker at the other end of the socket, our only argument, until it goes away."""
    _undo_inheritance()
    control = socket.socket(fileno=int(sys.argv[1]))
    received = receive_message(control)
    if received is None:
        return
    message, _ = received
    spec = FunctionSpec(**message["function"])
    sys.path += [entry for entry in spec.sys_path if entry not in sys.path and os.path.exists(entry)]
    with contextlib.suppress(OSError):
        os.chdir(spec.directory)
    if message["preload"]:
        # The default action of the alarm ends this process; the worker then starts one without preloading.
        signal.alarm(_PRELOAD_LIMIT_S)
        with contextlib.suppress(BaseException):  # the children will meet the same error and report it
            load_function(spec)
        signal.alarm(0)
        gc.collect()
        gc.freeze()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # from here on we leave when the worker does, keepers first
    _serve(control, spec)


def _undo_inheritance() -> None:
    """Give tasks plain signals and prompt output, whatever kind of worker started us."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        # line by line, so that what a task printed survives its being killed
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]


def _serve(control: socket.socket, spec: FunctionSpec) -> None:
    """Fork a keeper for every socket that the worker sends; return when it goes or after an idle time."""
    last_use = time.monotonic()
    while True:
        if select.select([control], [], [], 1.0)[0]:
            received = receive_message(control)
            if received is None:
                break
            slot = socket.socket(fileno=received[1][0])
            if os.fork() == 0:
                control.close()
                _keep_and_exit(slot, spec)
            slot.close()
            last_use = time.monotonic()
        if _keepers_remain():
            last_use = time.monotonic()
        elif spec.idle_s is not None and time.monotonic() - last_use > spec.idle_s:
            return
    # The keepers notice the same loss; wait so that our own end means that nothing is left.
    while _keepers_remain():
        time.sleep(0.005)


def _keepers_remain() -> bool:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _keep_and_exit(slot: socket.socket, spec: FunctionSpec) -> None:
    """Be a keeper, then end without running the exit handlers of imported modules."""
    code = 1
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        keep(slot, functools.partial(run_child, spec), spec.idle_s)
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(code)


def load_function(spec: FunctionSpec) -> Callable[..., Any]:
    """Import the task function; a torch that came with it is held to one thread."""
    for module in spec.imports:
        importlib.import_module(module)
    target: Any = importlib.import_module(spec.module)
    for part in spec.name.split("."):
        target = getattr(target, part)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    return target


def run_child(spec: FunctionSpec, key: str, files: ChildFiles) -> None:
    """The life of a child process: prepare, call the function once, hand over the result, end."""
    parent = os.getppid()
    os.setsid()
    die_with_parent(parent)
    os.dup2(files.output, 1)
    os.dup2(files.output, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # if the machine runs out of memory, a task goes before its trainer
        Path("/proc/self/oom_score_adj").write_text("1000")
    faulthandler.enable(files.stack)
    me = os.getpid()
    word = RAISED
    try:
        function = load_function(spec)
        seed_generators(key)
        with open(files.request, "rb", closefd=False) as request:
            args, kwargs = pickle.load(request)
        value = function(*args, **kwargs)
        if os.getpid() == me:  # a task may fork and both copies come back: only the first one reports
            _write_value(files.result, value)
            word = VALUE
    except BaseException as error:
        if os.getpid() == me:
            _write_error(files.result, error)
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    if os.getpid() == me:
        os.write(files.verdict, word)
    os._exit(0)


def seed_generators(key: str) -> None:
    """Seed the global generators from the task's key.

    Children are forked from one process, so without this all of them would draw the same "random" numbers;
    with it a task draws its own, and the same ones on every backend, worker and attempt.
    """
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _write_value(result: int, value: Any) -> None:
    try:
        with open(result, "wb", closefd=False) as file:
            pickle.dump(value, file, protocol=5)
    except BaseException as error:
        kind = type(value).__qualname__
        raise TypeError(f"the task's result, of type {kind}, cannot be pickled: {error}") from None


def _write_error(result: int, error: BaseException) -> None:
    """Replace whatever is in the result file by the traceback, without this file's own frame on top."""
    own_frame = error.__traceback__
    below = own_frame.tb_next if own_frame is not None else None
    text = "".join(traceback.format_exception(type(error), error, below))
    if len(text) > 2 * _HALF_ERROR:  # some messages carry a whole data set
        text = f"{text[:_HALF_ERROR]}\n[{len(text) - 2 * _HALF_ERROR} characters left out]\n{text[-_HALF_ERROR:]}"
    os.ftruncate(result, 0)
    os.lseek(result, 0, os.SEEK_SET)
    with open(result, "wb", closefd=False) as file:
        file.write(text.encode(errors="backslashreplace"))
