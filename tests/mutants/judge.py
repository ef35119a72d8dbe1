"""Does a fault make a test fail? One forked process per fault, with the fault put in while the module is imported.

Nothing is written: the source on disk stays as it is. The process that forks has imported all that tests need beside
our own modules, so that a fault costs little more than its tests.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal

from tests.mutants.faults import Fault

HOUSE = Path(__file__).parents[2]
SOURCE = HOUSE / "src" / "marlab"
PATIENCE = 4.0
"""A fault whose tests compute so many times as long as without it never ends, which counts as caught."""
BUSY = 20.0
"""Seconds on the clock for a second of computing: only tests that wait for something take so long."""
HEAVY = ("torch", "numpy", "scipy", "pandas", "pyarrow", "matplotlib", "scml", "negmas", "scml_agents", "gymnasium")
"""Libraries that are imported once for all faults."""
BROKEN = 99
"""Exit code of a process that could not even run tests."""

Verdict = Literal["caught", "endless", "survived"]


@dataclass(frozen=True)
class Judged:
    fault: Fault
    verdict: Verdict
    seconds: float


class _Changed(importlib.machinery.SourceFileLoader):
    """A module whose text was changed on the way."""

    def __init__(self, name: str, path: str, source: bytes) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, fault: Fault) -> None:
        self.path = SOURCE / fault.module
        self.name = "marlab." + fault.module.removesuffix(".py").replace("/", ".")
        self.source = fault.applied(self.path.read_bytes())

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        loader = _Changed(fullname, str(self.path), self.source)
        return importlib.util.spec_from_file_location(fullname, self.path, loader=loader)


class Judge:
    """Runs the tests of one module again and again."""

    def __init__(self, module: str, tests: Sequence[str]) -> None:
        self.module, self.tests = module, list(tests)
        for _ in range(2):  # the second time all libraries are imported, as for the faults
            code, seconds = self._run(None, limit=300.0)
            if code != 0:
                raise RuntimeError(f"the tests of {module} fail without any fault: pytest {' '.join(self.tests)}")
        self.limit = PATIENCE * seconds + 5.0

    def judge(self, fault: Fault) -> Judged:
        code, seconds = self._run(fault, self.limit)
        if code == BROKEN:
            raise RuntimeError(f"the tests could not be run with this fault: {fault.name}")
        verdict: Verdict = "endless" if code is None else "survived" if code == 0 else "caught"
        return Judged(fault, verdict, seconds)

    def _run(self, fault: Fault | None, limit: float) -> tuple[int | None, float]:
        """(pytest's exit code or None after `limit` seconds of computing, how many it took)."""
        with tempfile.TemporaryDirectory() as folder:
            known = Path(folder) / "modules.json"
            pid = os.fork()
            if pid == 0:
                resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
                os._exit(_child(fault, self.tests, known, Path(folder)))
            code, seconds = _wait(pid, BUSY * limit)
            if fault is None and code == 0:
                _import_all(json.loads(known.read_text()))
        return code, seconds


def _child(fault: Fault | None, tests: Sequence[str], known: Path, folder: Path) -> int:
    """The exit code of the tests."""
    os.setsid()  # what tests start is ended with them
    sink = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(sink, stream)
    try:
        import pytest

        os.chdir(HOUSE)
        if fault is not None:
            sys.meta_path.insert(0, _Finder(fault))
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long"]
        code = int(pytest.main([*options, f"--basetemp={folder / 'pytest'}", *tests]))
        known.write_text(json.dumps(list(sys.modules)))
        return code
    except BaseException:
        return BROKEN


def _wait(pid: int, limit: float) -> tuple[int | None, float]:
    """(exit code or None where it had to be ended, seconds of computing); other work of the machine does not count."""
    deadline = time.monotonic() + limit
    while True:
        done, status, used = os.wait4(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code, used.ru_utime + used.ru_stime
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        time.sleep(0.02)


def _import_all(names: Sequence[str]) -> None:
    for name in names:
        if name.partition(".")[0] in HEAVY:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def judge_all(module: str, tests: Sequence[str], faults: Sequence[Fault]) -> Iterator[Judged]:
    judge = Judge(module, tests)
    for fault in faults:
        yield judge.judge(fault)
