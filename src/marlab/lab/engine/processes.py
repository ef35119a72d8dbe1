"""Process trees: who descends from whom, how much memory they hold, and how to end them all.

Linux is read through /proc, so that nothing needs to be installed; other systems need psutil.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MB = 1024 * 1024


_START = """
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from {module} import main
main()
"""


def start_program(module: str, *arguments: str, **popen: Any) -> subprocess.Popen[bytes]:
    """Start `main()` of a module in a new interpreter that imports what we can import, in its own session.

    The session keeps a Ctrl-C at the terminal away from it; the caller decides what it means.
    """
    path = json.dumps([os.path.abspath(entry) for entry in sys.path])
    command = [sys.executable, "-c", _START.format(module=module), path, *arguments]
    return subprocess.Popen(command, start_new_session=True, **popen)


def descendants(root: int) -> list[int]:
    """Process ids of all children of `root`, their children and so on."""
    if not LINUX:
        import psutil

        try:
            return [process.pid for process in psutil.Process(root).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
    children = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            parent = _parent_of(entry)
            if parent is not None:
                children[parent].append(int(entry))
    found: list[int] = []
    todo = [root]
    while todo:
        found += (born := children[todo.pop()])
        todo += born
    return found


def _parent_of(pid: str) -> int | None:
    """Parent of a living process on Linux; None for one that is gone or only waits to be reaped."""
    try:
        stat = Path("/proc", pid, "stat").read_bytes()
    except OSError:
        return None
    # the command name in parentheses may hold anything, so count fields from its end
    state, parent = stat[stat.rindex(b")") + 2 :].split(None, 2)[:2]
    return None if state == b"Z" else int(parent)


def resident_mb(pids: list[int]) -> float:
    """Sum of resident memory. Cheap, but pages that processes share count once for each of them."""
    if not LINUX:
        return sum(_psutil_mb(pid, "rss") for pid in pids)
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            pages += int(Path("/proc", str(pid), "statm").read_bytes().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB


def proportional_mb(pids: list[int]) -> float:
    """Sum of memory with every shared page divided among its sharers: exact, but slower to read."""
    if not LINUX:
        return sum(_psutil_mb(pid, "uss") for pid in pids)
    total_kb = 0
    for pid in pids:
        try:
            lines = Path("/proc", str(pid), "smaps_rollup").read_bytes().splitlines()
        except OSError:
            continue  # gone, or about to go
        total_kb += sum(int(line.split()[1]) for line in lines if line.startswith(b"Pss:"))
    return total_kb / 1024


def _psutil_mb(pid: int, field: str) -> float:
    import psutil

    try:
        process = psutil.Process(pid)
        info = process.memory_info() if field == "rss" else process.memory_full_info()
        return float(getattr(info, field)) / _MB
    except psutil.Error:
        return 0.0


def adopt_orphans() -> None:
    """From now on, a descendant whose parent ends becomes our child, so that none can slip away (Linux)."""
    if LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """End this process when `parent`, which started it, ends: at once on Linux, within a second elsewhere."""
    if LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=watch_parent, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


def watch_parent(parent: int, every_s: float = 1.0) -> None:
    """End this process's group when its parent is no longer `parent`; for systems without prctl."""
    while os.getppid() == parent:
        time.sleep(every_s)
    os.killpg(0, signal.SIGKILL)


def end_descendants(reap: Callable[[], bool], patience_s: float = 10.0) -> None:
    """Kill everything that descends from this process; returns when nothing is left.

    `reap()` collects children that have ended and says whether others remain. We look again after each round,
    because a process may be born while its parent is being killed. A process that the kernel cannot end
    (stuck in a driver or on a dead network disk) is given up after `patience_s`.
    """
    give_up = time.monotonic() + patience_s
    while reap() and time.monotonic() < give_up:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
