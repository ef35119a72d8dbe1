"""Process trees: who descends from whom, how much memory they hold, and who notices the end of a parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from marlab.lab.engine.processes import descendants, proportional_mb, resident_mb


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child in a session of its own."""
    with subprocess.Popen(["sh", "-c", "setsid sleep 3600 & wait"], start_new_session=True) as process:
        while len(descendants(process.pid)) < 1:
            time.sleep(0.01)
        yield process
        for pid in [*descendants(process.pid), process.pid]:
            os.kill(pid, signal.SIGKILL)


def test_descendants_are_found_across_sessions(sleeper: subprocess.Popen[bytes]) -> None:
    assert set(descendants(os.getpid())) >= {sleeper.pid, *descendants(sleeper.pid)}
    assert descendants(sleeper.pid) == [p.pid for p in psutil.Process(sleeper.pid).children(recursive=True)]


def test_memory_agrees_with_psutil() -> None:
    me = psutil.Process()
    assert resident_mb([me.pid]) == pytest.approx(me.memory_info().rss / 2**20, rel=0.05)
    assert proportional_mb([me.pid]) == pytest.approx(me.memory_full_info().pss / 2**20, rel=0.05)
    assert resident_mb([2**30]) == proportional_mb([2**30]) == 0


def test_a_process_without_prctl_notices_the_death_of_its_parent() -> None:
    """What systems other than Linux rely on."""
    code = """
import os, subprocess, sys, time
watcher = "import sys; from marlab.lab.engine.processes import watch_parent; watch_parent(int(sys.argv[1]), 0.05)"
child = subprocess.Popen([sys.executable, "-c", watcher, str(os.getpid())], start_new_session=True)
print(child.pid, flush=True)
time.sleep(3600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        time.sleep(0.3)
        assert child.is_running()
        parent.kill()
    child.wait(120)
