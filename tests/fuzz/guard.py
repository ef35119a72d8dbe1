"""One case: files that are prepared, and a call that must end well.

It ends well when the call returns, refuses in one sentence (`UserError`, which the command line turns into exit code
2), or comes to where real work would begin (a tripwire stops it there). A traceback, too much memory or too much time
is a failure. Cases are pure functions of a seed, so a failure is found again by its family and number.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from marlab.lab.errors import UserError

SECONDS = 20.0
"""Of computing; what else the machine does meanwhile does not count."""
WAITING = 120.0
"""Seconds on the clock, for a case that waits."""
MEMORY = 1 << 30  # bytes beyond what the process has when a case begins

PIPE = "|"

Kind = Literal["done", "refused", "began", "failed"]


@dataclass(frozen=True)
class Case:
    """A call on prepared files."""

    family: str
    number: int
    told: str
    """What is done, for whom it failed."""
    call: Callable[[], Any]
    """Called in a folder of its own."""
    source: Path | None = None
    """A folder whose content is copied there first."""
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    """Then these are put in place: content, or None for nothing; a name that ends with / is a folder, one that ends
    with PIPE a pipe."""


@dataclass(frozen=True)
class Ended:
    case: Case
    kind: Kind
    why: str = ""


class WorkBegan(BaseException):
    """The input was accepted, and a training or a simulation would begin here."""


class TooLong(BaseException):
    """The case took more than SECONDS or WAITING."""


def work_begins(*args: Any, **kwargs: Any) -> Any:
    """Stands where real work would be done."""
    raise WorkBegan


def run_case(case: Case) -> Ended:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name, _limits():
        folder = Path(name) / "case" / "here"  # a path such as ../.. stays inside
        try:
            _prepare(case, folder)
            said = io.StringIO()
            with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                return _ended(case, case.call(), said.getvalue())
        except UserError as error:
            return Ended(case, "refused", str(error))
        except SystemExit as error:
            return _ended(case, error.code, "")
        except WorkBegan:
            return Ended(case, "began")
        except TooLong:
            return Ended(case, "failed", f"took longer than {SECONDS:g} seconds of computing: {case.told}")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return Ended(case, "failed", f"{case.told}\n{traceback.format_exc(limit=-12)}")
        finally:
            for path in Path(name).rglob("*"):  # a case may have made something unreadable
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o700)


def _ended(case: Case, code: Any, said: str) -> Ended:
    if not isinstance(code, int) or code == 0:
        return Ended(case, "done")
    if code in (1, 2) and "Traceback" not in said:
        return Ended(case, "refused", said[-300:])
    return Ended(case, "failed", f"{case.told}\nexit code {code}\n{said[-2000:]}")


def _prepare(case: Case, folder: Path) -> None:
    if case.source is not None:
        shutil.copytree(case.source, folder, symlinks=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in case.files.items():
        path = folder / name.removesuffix(PIPE)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if name.endswith("/"):
            path.mkdir(parents=True)
        elif name.endswith(PIPE):
            os.mkfifo(path)
        elif content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    """Time and memory of one case; more memory is refused by the system, which shows as a MemoryError."""
    old_limit = resource.getrlimit(resource.RLIMIT_DATA)
    alarms = {signal.SIGALRM: signal.ITIMER_REAL, signal.SIGPROF: signal.ITIMER_PROF}
    old_handlers = {alarm: signal.signal(alarm, _on_alarm) for alarm in alarms}
    resource.setrlimit(resource.RLIMIT_DATA, (_data_now() + MEMORY, old_limit[1]))
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        for alarm, timer in alarms.items():
            signal.setitimer(timer, 0)
            signal.signal(alarm, old_handlers[alarm])
        resource.setrlimit(resource.RLIMIT_DATA, old_limit)


def _on_alarm(number: int, frame: FrameType | None) -> None:
    raise TooLong


def _data_now() -> int:
    """Bytes of private memory of this process, as RLIMIT_DATA counts them."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 1 << 40
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024
