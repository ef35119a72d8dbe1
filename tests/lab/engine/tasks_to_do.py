"""Functions that the engine tests run in child processes: well-behaved ones and every kind of trouble."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from marlab.lab.engine.keeper import task_folder
from marlab.lab.engine.tasks import Task, run_tasks


def square(number: int) -> int:
    return number * number


def is_imported(module: str) -> bool:
    return module in sys.modules


def trouble(kind: str, number: int) -> int:
    """Square a number, unless `kind` names something worse to do."""
    if kind == "hang":
        time.sleep(3600)
    if kind == "segfault":
        ctypes.string_at(0)
    if kind == "eat":
        eaten = []
        for _ in range(40):  # 640 MB at most: on a busy machine it may take a while until somebody looks
            eaten.append(np.ones(2_000_000))  # 16 MB, really written
            time.sleep(0.002)
        time.sleep(3600)
    if kind == "raise":
        raise ValueError(f"no luck with {number}")
    return number * number


def surroundings() -> dict[str, object]:
    """What the engine promises about the process a task runs in."""
    return {
        "threads": os.environ["OMP_NUM_THREADS"],
        "leads its group": os.getpgid(0) == os.getpid(),
        "directory": os.getcwd(),
    }


def careless() -> tuple[float, float, int]:
    """What code does that never thinks of seeds: global generators, and hashes that Python varies."""
    return random.random(), float(np.random.random()), hash("the same in every process")


def wait_for(path: str) -> None:
    """Return once there is something at `path`."""
    while not Path(path).exists():
        time.sleep(0.01)


def say(text: str) -> None:
    print(text)
    print("and this on stderr", file=sys.stderr)


def say_for_ever() -> None:
    subprocess.run(["yes"], check=True)


def say_and_die(text: str) -> None:
    print(text)
    os.kill(os.getpid(), signal.SIGKILL)


def large(megabytes: int) -> np.ndarray:
    return np.full(megabytes * 2**20, 7, dtype=np.uint8)


class HeavyToWrite:
    """Takes memory only while it is pickled, and then until somebody sees it."""

    def __init__(self, megabytes: int) -> None:
        self.megabytes = megabytes

    def __reduce__(self) -> tuple[type, tuple[int]]:
        held = np.full(self.megabytes * 2**20, 7, dtype=np.uint8)
        time.sleep(3600)
        return int, (len(held),)


def heavy_to_write(megabytes: int) -> HeavyToWrite:
    return HeavyToWrite(megabytes)


def plus_one(array: np.ndarray) -> np.ndarray:
    return array + 1


def unpicklable() -> Callable[[], int]:
    return lambda: 1


class Rude(Exception):
    """An exception that can be neither pickled nor printed."""

    def __init__(self) -> None:
        self.holds = lambda: 1

    def __str__(self) -> str:
        raise RuntimeError("no words")


def rude() -> None:
    raise Rude


class Unloadable:
    """A value that can be pickled but not unpickled."""

    def __reduce__(self) -> tuple[Callable[..., int], tuple[str]]:
        return int, ("not a number",)


def unloadable() -> Unloadable:
    return Unloadable()


def verbose() -> None:
    raise ValueError("begin " + "x" * 10_000_000 + " end")


def leave(how: str) -> None:
    """End the process in an unusual way."""
    if how == "sys.exit":
        sys.exit(3)
    os._exit(0)


def return_twice() -> int:
    """Fork, and let both copies return: only the first one may count."""
    return os.fork()


def wait_here(folder: str) -> None:
    """Note our own number and that of a child in a session of its own, then wait for ever."""
    child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    note = Path(folder, f"{os.getpid()}.new")
    note.write_text(f"{os.getpid()} {child.pid}")
    note.rename(note.with_suffix(".pids"))
    time.sleep(3600)


def leave_behind(folder: str) -> str:
    """Return while a grandchild, cut off from us in every way, goes on."""
    note = Path(folder, "left")
    subprocess.run(["sh", "-c", f"setsid sh -c 'echo $$ > {note}; exec sleep 3600' & exit 0"], check=True)
    while not note.exists() or not note.read_text().strip():
        time.sleep(0.01)
    return "done"


def kill_ancestor_once(generation: int, marker: str) -> str:
    """Kill our keeper (0), nursery (1) or worker (2), but only the first time; then wait, or return."""
    if not Path(marker).exists():
        Path(marker).touch()
        ancestor = psutil.Process().parents()[generation]
        ancestor.kill()
        if generation != 1:  # a running task does not need its nursery any more
            time.sleep(3600)
    return "done"


def eat_elsewhere() -> None:
    """Fill the memory of a child, not our own."""
    code = "import time; eaten = bytearray(b'x') * 400_000_000; time.sleep(3600)"
    subprocess.run([sys.executable, "-c", code], check=True)


def share(megabytes: int, children: int) -> str:
    """Hold memory that several forked children see but do not copy."""
    shared = np.ones(megabytes * 2**17)
    forked = []
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            time.sleep(0.5)
            os._exit(int(shared[0]) - 1)
        forked.append(pid)
    for pid in forked:
        os.waitpid(pid, 0)
    return "done"


def nested(numbers: list[int]) -> list[int]:
    """A task that runs a batch of its own."""
    results = run_tasks(square, [Task(str(n), (n,)) for n in numbers], "serial")
    return sorted(result.value for result in results)


def leave_files(mark: str, how: str) -> str | None:
    """Make a folder for temporary files, tell where, and end without removing it."""
    folder = tempfile.mkdtemp(dir=task_folder())
    Path(folder, "big").write_text("x")
    Path(mark).write_text(folder)
    if how == "hang":
        time.sleep(3600)
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return task_folder()
